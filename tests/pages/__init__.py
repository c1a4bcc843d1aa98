"""The pages for people say what is so: generated ones are fresh, commands exist, examples are computed again."""
