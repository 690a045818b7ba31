from tests.seeds import shift_every_seed

shift_every_seed()
