"""All HTML: pieces (`html`), drawings (`charts`), cards and pages, and their style. The kernel needs none of it."""
