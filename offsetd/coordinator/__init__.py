"""The rules, pure: which slot a group belongs to, what a commit writes, what a fetch shows, what expires."""
