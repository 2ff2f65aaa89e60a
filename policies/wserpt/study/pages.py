"""Studies of the joined policy, with the pages that are written from their findings."""

from policies.wserpt.study import joined_pages, parts_page
from policies.wserpt.study.joined import guard, judged, matrix, removal

PAGES = {
    "matrix": joined_pages.matrix,
    "judged": joined_pages.judged,
    "removal": parts_page.removal,
    "guard": parts_page.guard,
}
"""Page of each study, as its findings are more than one list."""

__all__ = ["PAGES", "guard", "judged", "matrix", "removal"]
