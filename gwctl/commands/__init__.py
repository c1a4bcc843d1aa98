"""One module per noun. Each declares its verbs on a Noun and lists its nouns in NOUNS."""
