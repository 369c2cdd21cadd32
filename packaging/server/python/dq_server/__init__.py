"""The program `dq` with a Valkey server and the module dq. `program()` says where it is."""

import os
import sys
import sysconfig

__all__ = ["program"]


def program() -> str:
    """Returns the path of the program dq of this package."""
    schemes = [sysconfig.get_path("scripts"), os.path.join(sys.prefix, "bin")]
    # The directories into which `pip install --user` and `pip install --target` put programs.
    schemes.append(sysconfig.get_path("scripts", "posix_user"))
    schemes.append(os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin"))
    for place in schemes:
        file = os.path.join(place, "dq")
        if os.access(file, os.X_OK):
            return file
    raise FileNotFoundError(f"the program dq of dq-server is not here: {schemes}")
