"""The page at /app as browsers get it, without a browser: every page with every role, forms, sessions, sums."""
