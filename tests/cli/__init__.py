"""gwctl as its users meet it: real HTTP, real files, a real terminal where it matters."""
