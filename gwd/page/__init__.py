"""page: what a browser sees at /app.

Owns: the look of things: templates, drawings, words of the page; forms, and what the cookie of a session is.
Does not own: any fact, sum or right. What is shown are the records of the API's routes, asked in one read transaction;
what is done goes through the API's own routes, with their rights, checks and audit lines.
Invariants: GET changes nothing; a POST needs a page of ours before it and the session's token; no script, style or
event stands inside the HTML; what others wrote is text. Nothing here is imported before somebody opens the page.
Speaks to: the api, and `management.sessions`; wiring mounts it.

One page more:

1. A view in `views/`: a function of an `Ask` that gives back `Shown(template, values)`. `ask("/keys/<key>", key=…)` is
   the body of that route of the API as the caller may see it; with `body=` it is a POST that only reads. It holds no
   HTML and adds nothing up.
2. Its line in the `PAGES` of that module: path below /app, title, view, the right without which it is refused, its
   place in the navigation if it has one, the live routes it shows (`live=`, read with `ask.live(…)`).
3. A template in `templates/` that extends `base.html` and uses the macros of `parts.html`; it holds no arithmetic.
4. What can be done there: a line each in `ACTS`: the path that the form is sent to, its fields, the function that calls
   the API with `act.send(method, route, body, …)` and says where to go on. `asks_again` wants the key once more where
   the sign-in is old. Of a 400 the page `form` is shown again with what was typed and the message at its field.
5. The module in `table.MODULES`. `tests/page` then tries it with every role.
"""
