#!/usr/bin/python3
"""jupyter_spawner_test SEPTET: both ways of deploy/jupyter with JupyterHub's own spawner.

A lease daemon on a simulated A100; JupyterHub's LocalProcessSpawner starts a small program instead of a
notebook server. Ends with 77, saying so, where JupyterHub (Debian: jupyterhub) cannot be imported.
"""

import asyncio
import json
import logging
import os
import pathlib
import pwd
import subprocess
import sys
import tempfile
import time

try:
    import jupyterhub
    from jupyterhub import orm
    from jupyterhub.objects import Hub
    from jupyterhub.spawner import LocalProcessSpawner
    from jupyterhub.user import User
    from traitlets.config import Config
except ImportError as error:
    print(f"skipped: {error} (Debian: jupyterhub)")
    sys.exit(77)

SEPTET = pathlib.Path(sys.argv[1]).resolve()
SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
NODE = "A100-SXM4-40GB"
PATIENCE_S = 60


def leases():
    done = subprocess.run([SEPTET, "-o", "json", "lease", "list"], capture_output=True, text=True)
    return json.loads(done.stdout)["leases"] if done.returncode == 0 else None


def eventually(holds, what):
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.05)


def new_spawner(config, command):
    """A spawner for this user, as JupyterHub makes it."""
    session = orm.new_session_factory("sqlite:///:memory:")()
    name = pwd.getpwuid(os.geteuid()).pw_name
    session.add(orm.User(name=name))
    session.commit()
    user = User(session.query(orm.User).first(), {"config": config})
    return user._new_spawner("", spawner_class=LocalProcessSpawner, config=config, cmd=command, hub=Hub(),
                             oauth_client_id="test", interrupt_timeout=1, term_timeout=1, kill_timeout=1,
                             ip="127.0.0.1")


# What stands for a notebook server: writes its environment and stays.
SERVER = "import json, os, sys, time; json.dump(dict(os.environ), open(sys.argv[1] + '.part', 'w')); " \
         "os.rename(sys.argv[1] + '.part', sys.argv[1]); time.sleep(600)"


async def life(spawner, seen):
    """Start to stop; the environment that the server saw."""
    spawner.run_pre_spawn_hook()
    await spawner.start()
    eventually(seen.exists, "the server runs")
    assert await spawner.poll() is None, "the server has ended"
    held = leases()
    assert len(held) == 1 and held[0]["slice"] == "1g.5gb", held
    await spawner.stop(now=True)
    spawner.run_post_stop_hook()
    eventually(lambda: leases() == [], "the slice is given back")
    return json.loads(seen.read_text())


def by_command(folder):
    seen = folder / "by_command"
    command = [str(SEPTET), "run", "--slice", "1g.5gb", "--queue", "--idle", "1h", "--", "/usr/bin/python3",
               "-c", SERVER, str(seen)]
    config = Config()
    # A daemon that is not at the system's place has to be named: JupyterHub passes on only what it is told.
    config.Spawner.environment = {"SEPTET_SOCKET": os.environ["SEPTET_SOCKET"]}
    environment = asyncio.run(life(new_spawner(config, command), seen))
    assert environment["CUDA_VISIBLE_DEVICES"].startswith("MIG-"), environment


def by_hook(folder):
    sys.path.insert(0, str(SOURCE / "deploy" / "jupyter"))
    import septet_spawner

    seen = folder / "by_hook"
    config = Config()
    septet_spawner.configure(config, slices=["1g.5gb", "2g.10gb"])
    spawner = new_spawner(config, ["/usr/bin/python3", "-c", SERVER, str(seen)])
    spawner.user_options = spawner.options_from_form({"slice": ["1g.5gb"]})
    environment = asyncio.run(life(spawner, seen))
    assert environment["CUDA_VISIBLE_DEVICES"].startswith("MIG-"), environment
    assert "CUDA_MPS_PIPE_DIRECTORY" not in environment, environment


def main():
    logging.basicConfig(level=logging.WARNING)
    with tempfile.TemporaryDirectory(prefix="septet-jupyter-") as path:
        folder = pathlib.Path(path)
        os.environ.update(SEPTET_SIM_ROOT=str(folder / "sim"), SEPTET_STATE_DIR=str(folder / "state"),
                          SEPTET_SOCKET=str(folder / "lend.sock"), CUDA_MPS_PIPE_DIRECTORY="/stale",
                          PATH=f"{SEPTET.parent}:{os.environ['PATH']}")
        subprocess.run([SEPTET, "--simulate", NODE, "--yes", "apply", "1g.5gb:7"], check=True,
                       capture_output=True)
        daemon = subprocess.Popen([SEPTET, "--simulate", NODE, "lend-daemon", "--ledger", folder / "ledger"])
        try:
            eventually(lambda: leases() is not None, "the lease daemon answers")
            by_command(folder)
            by_hook(folder)
        finally:
            for lease in leases() or []:
                subprocess.run([SEPTET, "lease", "release", str(lease["id"])], check=False)
            daemon.terminate()
            daemon.wait()
    print(f"JupyterHub {jupyterhub.__version__}: a slice by command and by hook")


main()
