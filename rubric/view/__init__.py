"""All HTML: pieces (`html`), cards and pages, and their style. The kernel needs none of it."""
