"""Commands of the terminal."""

from tests.mistakes.case import mistake

TITLE = "Commands"
CASES = [
    mistake("A command that does not exist", "jorth solv", "solv"),
    mistake("No signature", "jorth solve procrustes source.csv target.csv -o X.npy", "--signature"),
    mistake("No output", "jorth solve eigen A.csv -s 3,2", "--output"),
    mistake("A file that does not exist", "jorth solve eigen B.csv -s 3,2 -o X.npy", "B.csv"),
    mistake(
        "Text for a signature",
        "jorth solve eigen A.csv -s three -o X.npy",
        "--signature must be",
        "'three'",
    ),
    mistake(
        "A signature of another size",
        "jorth solve eigen A.csv -s 3,3 -o X.npy",
        "--signature must have 5 signs",
        "3,3",
    ),
    mistake(
        "A file of other signs",
        "jorth solve eigen A.csv -s signs.txt -o X.npy",
        "--signature must name a file of +1 and -1",
        "signs.txt",
    ),
    mistake(
        "A matrix that is not symmetric",
        "jorth solve eigen tilted.csv -s 3,2 -o X.npy",
        "symmetric",
    ),
    mistake(
        "An output format that it does not write",
        "jorth solve eigen A.csv -s 3,2 -o X.xlsx",
        "--output must end in",
        "X.xlsx",
    ),
    mistake(
        "An output that is the input",
        "jorth solve eigen A.csv -s 3,2 -o A.csv",
        "--output must not replace an input",
        "A.csv",
    ),
    mistake(
        "A file of two matrices",
        "jorth solve eigen several.npz -s 3,2 -o X.npy",
        "several.npz",
        "key",
    ),
    mistake("A damaged file", "jorth solve eigen broken.npy -s 3,2 -o X.npy", "broken.npy"),
    mistake(
        "A table of words",
        "jorth solve procrustes words.csv words.csv -s 1,1 -o X.npy",
        "words.csv",
    ),
    mistake(
        "Lines of different lengths",
        "jorth solve procrustes ragged.csv ragged.csv -s 2,1 -o X.npy",
        "ragged.csv",
    ),
    mistake(
        "An empty file", "jorth solve procrustes empty.csv empty.csv -s 2,1 -o X.npy", "empty.csv"
    ),
    mistake(
        "Clouds of different lengths",
        "jorth solve procrustes source.csv short.csv -s 3,2 -o X.npy",
        "19",
    ),
    mistake(
        "A method by its short name",
        "jorth solve quadratic A.csv -s 3,2 -o X.npy --method lbfgs",
        "--method",
        "riemannian-lbfgs",
    ),
    mistake(
        "Text for a number",
        "jorth solve quadratic A.csv -s 3,2 -o X.npy --method gs-jobcd --option theta=abc",
        "theta",
        "abc",
    ),
    mistake(
        "An option without a value",
        "jorth solve quadratic A.csv -s 3,2 -o X.npy --method gs-jobcd --option theta",
        "--option",
        "theta",
    ),
    mistake(
        "A negative tolerance",
        "jorth solve quadratic A.csv -s 3,2 -o X.npy --tolerance=-1",
        "tolerance",
        "-1",
    ),
    mistake("Text for a seed", "jorth demo --seed one", "--seed", "one"),
    mistake("A folder that cannot be made", "jorth demo -o a_file/out", "a_file"),
    mistake("A data set with a slip of the pen", "jorth data show cifra", "cifra", "cifar"),
    mistake(
        "A data set that has not been fetched",
        "jorth data show cifar --folder nothing",
        "cifar",
        "jorth data fetch",
    ),
    mistake("A data set that jorth does not know", "jorth data fetch imagenet", "imagenet"),
    mistake("A file for the folder", "jorth data list --folder a_file", "--folder", "a_file"),
    mistake(
        "A solver that does not exist",
        "jorth bench hevp --quick --solver newton-raphson -o rows1",
        "solver",
        "newton-raphson",
    ),
    mistake("A size that is none", "jorth bench hevp --size 20 -o rows2", "--size", "20"),
    mistake("A share above one", "jorth bench procrustes --p-share 2 -o rows3", "--p-share", "2"),
    mistake("A negative ridge", "jorth bench probe --ridge=-1 -o rows4", "--ridge", "-1"),
    mistake(
        "A graph that does not exist",
        "jorth bench kge --quick --graph nope --data-dir small -o rows7",
        "nope",
    ),
    mistake(
        "A data set that does not exist",
        "jorth bench hevp --data cifra -o rows8",
        "--data",
        "cifar",
    ),
    mistake("No epochs", "jorth bench kge --epochs 0 -o rows5", "--epochs", "0"),
    mistake("No time", "jorth bench speed --time-limit 0 -o rows6", "--time-limit", "0"),
    mistake("A folder without a benchmark", "jorth report nothing", "nothing"),
    mistake("A folder that does not exist", "jorth report nowhere", "nowhere"),
    mistake("Rows that are no JSON", "jorth report rows", "rows.jsonl"),
    mistake("Settings that do not exist", "jorth kge train none.toml", "none.toml"),
    mistake(
        "Settings with an unknown name", "jorth kge train settings.toml", "settings.toml", "'lr'"
    ),
    mistake(
        "A preset that does not exist", "jorth kge train --preset wordnet", "--preset", "wordnet"
    ),
    mistake("A folder without triples", "jorth kge train --data nothing -o kge1", "nothing"),
    mistake(
        "A setting with a slip of the pen",
        "jorth kge train --set temprature=3",
        "--set",
        "'temperature'",
    ),
    mistake("A setting without a value", "jorth kge train --set epochs", "--set", "epochs"),
    mistake("Text for a number", "jorth kge train --set epochs=many", "epochs", "many"),
    mistake("No epochs", "jorth kge train --epochs 0", "--epochs", "0"),
    mistake("A folder without a model", "jorth kge evaluate -m nothing", "nothing"),
    mistake(
        "A part that does not exist", "jorth kge evaluate -m model --part dev", "--part", "dev"
    ),
    mistake("No question mark", "jorth kge predict -m model Rome capital_of Italy", "?"),
    mistake(
        "A name with a slip of the pen",
        "jorth kge predict -m model Roma capital_of '?'",
        "Roma",
        "Rome",
    ),
    mistake(
        "Two columns for three", "jorth kge predict -m model --queries queries.txt", "queries.txt"
    ),
    mistake(
        "A name with a slip of the pen", "jorth kge nearest -m model Norwya", "Norwya", "Norway"
    ),
    mistake(
        "A relation that does not exist",
        "jorth kge explain -m model capitalof",
        "capitalof",
        "capital_of",
    ),
    mistake(
        "A picture in a format that it does not write",
        "jorth kge draw -m model -o picture.docx",
        "picture.docx",
    ),
]
