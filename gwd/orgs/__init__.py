"""orgs: organizations, workspaces, members, their settings, and who may do what.

Owns: the tables `organization`, `workspace`, `member`, `workspace_member`; the settings and their revision; the table
of rights.
Does not own: keys, budgets, invitations in flight, the catalog that allow-lists name.
Invariants: an organization has at least one owner and its workspace `default`; whatever the pipeline's snapshot reads
from here bumps the organization's revision in the same transaction.
Queries: peewee; plain SQL for what rights, admission and settlement ask, and for the one that makes a member lead.
Speaks to: the store; every room above asks it for organizations and rights.
"""
