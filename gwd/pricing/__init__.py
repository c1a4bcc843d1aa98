"""pricing: what a request may cost, what it did cost, and how many tokens a text is, as pure arithmetic.

Owns: the cost of a usage at a price (`cost`), the estimate of tokens (`estimate`, `tokens`), their upper
bound (`bound`), the credit to hold (`hold`), what is sold and billed of the priced extras (`extras`), and the check of
what a vendor reports (`usage_check`).
Does not own: prices (catalog), amounts held or charged (ledger), the moment a check is made (pipeline).
Invariants: the parts of a cost add up to its total; a hold covers every cost whose tokens stay within its bounds;
a bound is never under a real count; no float touches money.
Speaks to: core only.
"""
