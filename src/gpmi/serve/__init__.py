"""`gpmi serve`: studies in a browser, and a JSON API for programs. Needs the extra `serve`.

A request passes through five layers, from the browser to the database:

1. `server` runs the process; `security` checks host, origin, size and token before anything else.
2. `app` has the routes. GET requests go to `pages`, submitted forms to `forms`, `/api/...` to `api`.
3. `forms` reads what was typed, `submission` saves a form with results: `cell_parsing` reads a result,
   `parameter_fields` a coordinate, `new_study` a space and goals. `output_fields` are what an experiment measures: one
   result, or the outputs of a study with goals. `evaluations` are how far experiments go. `refusal_words` says what is
   refused in the words of the forms.
4. `session` is one open study. `catalogue` finds the studies of a database or a folder and opens their sessions.
5. `gpmi.run.study.Study` does the work.

A result is entered by POST /study/{slug}/results: `forms.save_results` -> `Submission.save_row` ->
`cell_parsing.parse_cell` -> `Session.tell` -> `Study.tell`. A program sends it to POST /api/tell: `api.tell` ->
`Session.tell`.

What people see: `page_layout` is the frame of every page, `study_page` the notebook of a study (with `summary`,
`best_so_far`, `trial_table` and, for several objectives, `front_page`), `trial_page` one trial, `conflict_page` the
page after two people entered the same trial, `new_study` the pages that create one. `live_updates` tells open pages
what has changed. `model_worker` computes whatever needs a model, in subprocesses for large studies. `app_state` holds
the objects that all requests share.
"""

from gpmi.serve.app import application
from gpmi.serve.catalogue import Catalogue
from gpmi.serve.security import AccessRules
from gpmi.serve.server import run

__all__ = ["AccessRules", "Catalogue", "application", "run"]
