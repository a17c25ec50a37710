"""What a file may include, and from where: other files below a folder, bounded, and nothing that runs."""
