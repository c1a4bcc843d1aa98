"""client: the side of a generation that its client sees.

Owns: the frames on their way to the client, how far it is behind.
Does not own: the connection (api), the form of the frames (dialects), what the frames say.
Invariants: one writer, one reader, frames in order; a client that left holds nobody up.
Speaks to: nobody.
"""
