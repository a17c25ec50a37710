"""Show results as HTML: pieces (`html`), drawings (`charts`) and their style sheet. Nothing here reads or runs."""
