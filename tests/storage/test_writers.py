"""Every file that is written is replaced whole, or grows by lines."""

import re
from pathlib import Path

import jorth

PACKAGE = Path(jorth.__file__).parent
DIRECT = re.compile(
    r"\.write_text\(|\.write_bytes\(|\bopen\((\w+, )?\"[wxa+]|save_file\(|\bsavefig\(path|\.tmp\b"
)
ALLOWED = {
    "storage/atomic.py": "it is the one that replaces",
    "kge/logs.py": "a line an epoch",
    "bench/core/records.py": "a line a run, under a lock",
}


def test_files_are_written_in_few_places():
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if DIRECT.search(path.read_text(encoding="utf-8"))
    }
    assert found == set(ALLOWED)
