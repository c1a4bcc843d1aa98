"""gwd, the gateway daemon: one request line from client to vendor and back, paid exactly."""
