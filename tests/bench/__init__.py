"""A bench beside other gateways; run by hand (`make bench`), never with the tests."""
