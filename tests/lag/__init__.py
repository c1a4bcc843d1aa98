"""The worst input that is allowed, of every kind, beside a stream that is paced."""
