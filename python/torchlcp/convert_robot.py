"""Converts files of robots for C++:  python -m torchlcp.convert_robot ROBOT.xml ROBOT.json

`lcp::physics::load_robot` and `torchlcp.physics.load_robot` read what it writes, without the package mujoco-core.
"""

from __future__ import annotations

import argparse
import pathlib
import sys

from torchlcp.physics import load_mjcf, load_urdf

__all__: list[str] = []


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m torchlcp.convert_robot", description="Converts an MJCF or URDF file for load_robot."
    )
    parser.add_argument("robot", type=pathlib.Path, help="the file to read; a name that ends with .urdf is that of a URDF")
    parser.add_argument("file", type=pathlib.Path, nargs="?", help="the file to write; without it, ROBOT with the ending .json")
    parser.add_argument("--ignore", nargs="+", default=[], metavar="NAME", help="what is left out; see load_mjcf")
    parser.add_argument("--floating", action="store_true", help="the first link of a URDF moves freely")
    parser.add_argument("--ground", action="store_true", help="a URDF stands on the plane z = 0")
    arguments = parser.parse_args()
    try:
        if arguments.robot.suffix == ".urdf":
            robot = load_urdf(arguments.robot, floating=arguments.floating, ground=arguments.ground, ignore=arguments.ignore)
        elif arguments.floating or arguments.ground:
            raise ValueError("--floating and --ground are for files that end with .urdf")
        else:
            robot = load_mjcf(arguments.robot, ignore=arguments.ignore)
        robot.save(arguments.file or arguments.robot.with_suffix(".json"))
    except (ImportError, OSError, ValueError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
