"""Half of the time CSDM, then GS-JOBCD as printed from its end."""

from benchmark_utils import Printed

import jorth


class Solver(Printed):
    name = "CSDM then GS-JOBCD as printed"
    parameters = {"theta": [1.0]}

    def stages(self):
        return [jorth.CSDM(optimizer="adam"), self.printed("gs-jobcd")]
