"""
Formats of other frameworks and benchmarks, registered by entry points as any package's are.

They stand on what a stranger's format has: `Format`, the cursor and its notes, rules of recognition, public names.
"""
