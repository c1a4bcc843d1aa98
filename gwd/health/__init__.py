"""health: how endpoints and credentials did lately, and what rests because of it.

Owns: rests after failures, outages, medians of speed and of the time to the first token, last failures, what vendors
said last of credentials; how an endpoint stands, as the operator sees it.
Does not own: which endpoint a request goes to (pipeline), the catalog, the credentials themselves.
Invariants: a rest only orders; an endpoint is closed only after a refused key, or within a wait that its vendor named.
What rests, or has rested and not served since, gets one call at a time: the trial. The first request makes it, real
traffic is the probe; the others go elsewhere, and where nothing else is left they wait until the vendor has begun to
answer it or it has failed. After a failure the next in turn makes its own call: nobody is told the failure of another's
request. Who has waited five seconds in all goes all the same (a vendor may think for a minute, and no client's long
request may keep a model from the others), so nobody is refused for the sake of a trial.
All of it outlives the process: one small write in a while and at a clean stop, none for a request. A killed process
loses the last seconds of it, but no refused key: that is kept at once, and closed in every life until the key is edited
(one that is read from a file or the environment is tried once by each new process, since it may be another by then).
Queries: plain SQL: two small tables, written whole.
Speaks to: catalog, credentials, the store.
"""
