"""Solves LCPs by Drake, one after another, for drake.cpp.

    python bench/drake_process.py SOLVER FILE FIRST

SOLVER: a class of pydrake.solvers. FILE: of each problem n, an int64, M by rows and q. Of each problem from FIRST on, it
writes 1 if Drake claims to have solved it, else 0, and z, all as doubles.
"""

import signal
import sys

import numpy
import pydrake.solvers

LIMIT = 10  # seconds for a problem; then this process ends


def main():
    name, path, first = sys.argv[1:]
    solver = getattr(pydrake.solvers, name)()
    numbers = numpy.fromfile(path, dtype=numpy.float64)
    sizes = numbers.view(numpy.int64)
    at = k = 0
    while at < len(numbers):
        n = sizes[at]
        M, q = numbers[at + 1 : at + 1 + n * n].reshape(n, n), numbers[at + 1 + n * n : at + 1 + n * n + n]
        at += 1 + n * n + n
        if k >= int(first):
            program = pydrake.solvers.MathematicalProgram()
            program.AddLinearComplementarityConstraint(M, q, program.NewContinuousVariables(n))
            signal.alarm(LIMIT)
            result = solver.Solve(program)
            sys.stdout.buffer.write(numpy.append(float(result.is_success()), result.get_x_val()).tobytes())
            sys.stdout.flush()
        k += 1


main()
