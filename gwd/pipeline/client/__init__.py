"""client: the side of a generation that its client sees.

Owns: the head of an answer, its frames on their way to the client, signs of life meanwhile, how far the client is
behind.
Does not own: the connection (api), the form of the frames (dialects), what the frames say.
Invariants: one writer, one reader, frames in order; a client that left does not block its generation.
Speaks to: dialects, settle for the last event, dispatch for what came of it, plan for the target that an answer names.
"""
