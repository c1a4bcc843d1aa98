"""The generated pages of docs/: each is a function from what the code says of itself to the text of one file.

Owns: the settings, errors, metrics and command pages, the man pages, and the check that they are fresh.
Does not own: the facts, which stand in the code they are about; the pages written by hand.
Invariants: the same code makes the same text; a page names no address outside the project.
"""
