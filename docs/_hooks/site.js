// Names and keys that the theme's own script leaves out of what it adds to a page.
"use strict";
(() => {
  const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => {
    if (target.scrollWidth > target.clientWidth) target.tabIndex = 0;
    else target.removeAttribute("tabindex");
  }));

  function mend() {
    // a button beside a block of code is no place to navigate to
    document.querySelectorAll(".md-code__nav:not([role])").forEach((nav) => nav.setAttribute("role", "none"));
    // a wide table scrolls by keyboard, too
    document.querySelectorAll(".md-typeset__scrollwrap:not([role])").forEach((table) => {
      table.setAttribute("role", "group");
      table.setAttribute("aria-label", "Table");
      resized.observe(table);
    });
  }

  new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
  mend();
})();
