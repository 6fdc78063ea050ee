"""The user's files: those with a function on the stack or a line in the journal."""

from gradwright.doctor.crash import Crash
from gradwright.doctor.syntax.tree import SourceTree, tree_of

_FILES = 200


def source_files(crash: Crash) -> list[SourceTree]:
    """Parsed files of the user whose code ran, those on the crash's stack first."""
    names = dict.fromkeys(frame.file for frame in reversed(crash.user_frames))
    known = (name for name, is_user in crash.journal.is_user.known.items() if is_user)
    names.update(dict.fromkeys(known))
    trees = (tree_of(name) for name in list(names)[:_FILES])
    return [tree for tree in trees if tree is not None]
