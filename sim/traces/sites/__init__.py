"""Sites: what their readers share, and the reader of the scheduler whose exports a folder holds.

A reader of sites is a format whose name ends in ``_site`` and whose package has a module ``site``
with ``recognises(path) -> bool`` and ``read_site(path, pseudonyms=...) -> Site``, and maybe
``with_queue(site, path, pseudonyms) -> Site``, which adds the jobs of now.
"""

from __future__ import annotations

from pathlib import Path

from sim import traces
from sim.base.errors import InputError
from sim.traces.sites.pseudonyms import Pseudonyms
from sim.traces.sites.site import Site

ENDING = "_site"


def read_site(path: Path, pseudonyms: Pseudonyms | None = None) -> Site:
    """Read a folder of exports with the reader that recognises it.

    Raises
    ------
    InputError
        If no reader does, or of a file's content.
    """
    if not path.is_dir():
        raise InputError(f"{path} is no folder; give one with a site's exports", rule="no folder")
    readers = [name for name in traces.names() if name.endswith(ENDING)]
    for name in readers:
        module = traces.FORMATS.part(name, "site")
        if module is not None and module.recognises(path):
            site: Site = module.read_site(path, pseudonyms=pseudonyms)
            if hasattr(module, "with_queue"):
                site = module.with_queue(site, path, pseudonyms)
            return site
    known = " or ".join(name.removesuffix(ENDING).capitalize() for name in readers)
    raise InputError(
        f"{path} holds no exports of {known}; docs/your_site.md has the commands that write them",
        rule="no site",
    )
