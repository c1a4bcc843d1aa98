"""gwctl, the command line of a gwd gateway. It speaks HTTP only and shares no code with gwd."""
