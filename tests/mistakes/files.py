"""Files and folders that are missing, of another kind, or damaged."""

from tests.mistakes.case import mistake

TITLE = "Files and folders"
CASES = [
    mistake("A folder that does not exist", 'kge.load_triples("nowhere")', "folder", "nowhere"),
    mistake("A folder without triples", 'kge.load_triples("nothing")', "train", "nothing"),
    mistake("Two columns for three", 'kge.load_triples("pairs")', "pairs/train.txt", "line 1"),
    mistake("A folder without a model", 'kge.load_model("nothing")', "folder", "nothing"),
    mistake("A number for a path", "kge.load_model(3)", "folder must be a path", "int 3"),
    mistake(
        "Settings that do not exist",
        'kge.read_config("none.toml")',
        "path must be that of a file of settings",
        "none.toml",
    ),
    mistake(
        "Settings with an unknown name", 'kge.read_config("settings.toml")', "settings.toml", "'lr'"
    ),
    mistake("Settings that are no TOML", 'kge.read_config("broken.toml")', "broken.toml", "line 1"),
    mistake(
        "A log whose folder is a file", 'kge.CSVLog("a_file/log.csv")({"epoch": 1.0})', "a_file"
    ),
    mistake("A number for a path", "kge.CSVLog(3)", "path must be a path", "int 3"),
    mistake("A number for a path", "kge.TensorBoardLog(3)", "folder must be a path", "int 3"),
    mistake("A model over a file", 'kge.save_model("a_file", named)', "folder", "a_file"),
    mistake(
        "A data set that has not been fetched",
        'datasets.load("cifar", folder="nothing")',
        "cifar",
        "jorth data fetch",
    ),
    mistake(
        "A checksum that is none",
        'datasets.fetch("cifar", folder="nothing", sha256="abc")',
        "sha256 must be",
        "'abc'",
    ),
    mistake(
        "An address that is none",
        'datasets.fetch("cifar", folder="nothing", url="somewhere", trust=True)',
        "url must",
        "somewhere",
    ),
    mistake(
        "A data set without a public address", 'datasets.fetch("mnist", folder="nothing")', "mnist"
    ),
]
