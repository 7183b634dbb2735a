"""A slice of a GPU for every JupyterHub user: two ways; put one into jupyterhub_config.py.

1. The server runs on a borrowed slice and gives it back when it ends (local processes):

       c.Spawner.cmd = ["septet", "run", "--slice", "1g.5gb", "--queue", "--idle", "1h", "--",
                        "jupyterhub-singleuser"]

2. A lease beside the server, for spawners that start containers:

       import septet_spawner
       septet_spawner.configure(c, slices=["1g.5gb", "2g.10gb", "3g.20gb"])
"""

import json
import subprocess


def septet(*words):
    """Runs septet and returns its JSON answer; its error text becomes the exception."""
    done = subprocess.run(["septet", "-o", "json", *words], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"septet {' '.join(words)} failed")
    return json.loads(done.stdout)


def borrow(spawner):
    """pre_spawn_hook: borrows the chosen slice and hands its environment to the server."""
    wanted = (spawner.user_options or {}).get("slice", "1g.5gb")
    answer = septet("lease", "acquire", "--slice", wanted, "--wait", "5m", "--purpose",
                    f"notebook of {spawner.user.name}")
    spawner.septet_lease = answer["leases"][0]["id"]
    for variable in answer["variables"]:
        if variable["value"] is None:
            spawner.environment.pop(variable["name"], None)
        else:
            spawner.environment[variable["name"]] = variable["value"]


def give_back(spawner):
    """post_stop_hook: gives the slice back; one that has ended meanwhile is no error."""
    lease = getattr(spawner, "septet_lease", None)
    if lease is not None:
        subprocess.run(["septet", "lease", "release", str(lease)], check=False)
        spawner.septet_lease = None


def configure(config, slices):
    """Offers the slices in a form and borrows the chosen one."""
    options = "".join(f'<option value="{each}">{each}</option>' for each in slices)
    config.Spawner.options_form = f'<label>GPU slice <select name="slice">{options}</select></label>'
    config.Spawner.options_from_form = lambda form: {"slice": form["slice"][0]}
    config.Spawner.pre_spawn_hook = borrow
    config.Spawner.post_stop_hook = give_back
