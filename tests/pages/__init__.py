"""What pages show is played: the examples of money and of clients, on real nodes."""
