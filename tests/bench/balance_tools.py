"""What `bench balance` and `bench balance_grpc` share: starting, watching and configuring proxies."""

import os
import pathlib
import platform
import shutil
import signal
import socket
import statistics
import subprocess
import time


def program(name):
    """The path of nginx or haproxy, or nothing."""
    return os.environ.get(name.upper()) or shutil.which(name, path=os.environ.get("PATH", "") +
                                                        ":/usr/sbin")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cpu_ns(pids):
    total = 0
    for pid in pids:
        for task in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                total += int(task.read_text().split()[0])
            except (OSError, IndexError):
                pass
    return total


def family(pid):
    pids = [pid]
    for child in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
        for grandchild in child.read_text().split():
            pids += family(int(grandchild))
    return pids


def wait_for(port):
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            time.sleep(0.05)
    raise SystemExit(f"bench balance: nothing listens on port {port}")


def stop(process):
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def spread(values, digits):
    return (f"{statistics.median(values):.{digits}f} "
            f"({min(values):.{digits}f}..{max(values):.{digits}f})")


def version(command):
    try:
        out = subprocess.run(command, capture_output=True, text=True)
        return (out.stdout + out.stderr).splitlines()[0]
    except (OSError, IndexError):
        return "absent"


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo")
                  if line.startswith("model name")), "?")
    return f"{os.cpu_count()} x {model}, Linux {platform.release()}"


def resident_kib(pids):
    pages = sum(int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in pids)
    return pages * os.sysconf("SC_PAGE_SIZE") // 1024


def nginx_conf(folder, port, upstreams, tuned):
    servers = "\n".join(f"    server {u};" for u in upstreams)
    if tuned:
        upstream = servers + "\n    keepalive 256;\n    keepalive_requests 10000000;"
        location = """proxy_pass http://replicas; proxy_http_version 1.1;
      proxy_set_header Connection ""; proxy_buffers 16 64k; proxy_buffer_size 64k;"""
        extra = """access_log off; client_body_buffer_size 1m; keepalive_requests 10000000;
  tcp_nodelay on;"""
    else:  # as the guide has it: round robin over seven servers, the rest as it comes
        upstream, location = servers, "proxy_pass http://replicas;"
        extra = f"access_log {folder}/access.log; keepalive_requests 10000000;"
    # Its worker has to reach the replicas' sockets, which belong to whoever runs this.
    user = "user root;" if os.getuid() == 0 else ""
    return f"""{user} worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  client_max_body_size 10m; {extra}
  upstream replicas {{
{upstream}
  }}
  server {{ listen 127.0.0.1:{port};
    location / {{ {location} }}
  }}
}}
"""


HAPROXY_DEFAULTS = """global
  maxconn 4096
  nbthread 1
defaults
  mode http
  timeout client 60s
  timeout server 60s
  timeout connect 5s
  timeout queue 60s
  http-reuse always"""


def haproxy_conf(port, upstreams, splice, pull):
    limit = " maxconn 1" if pull else ""
    servers = "\n".join(f"  server s{i} {u}{limit}" for i, u in enumerate(upstreams))
    options = "\n  option splice-auto" if splice else ""
    return HAPROXY_DEFAULTS + f"""{options}
frontend f
  bind 127.0.0.1:{port}
  default_backend b
backend b
  balance {"leastconn" if pull else "roundrobin"}
{servers}
"""


def nginx_grpc_conf(folder, port, upstreams):
    servers = "\n".join(f"    server {u};" for u in upstreams)
    user = "user root;" if os.getuid() == 0 else ""
    return f"""{user} worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  client_max_body_size 10m; access_log off; client_body_buffer_size 1m; keepalive_requests 10000000;
  upstream replicas {{
{servers}
    keepalive 256;
    keepalive_requests 10000000;
  }}
  server {{ listen 127.0.0.1:{port} http2;
    location / {{ grpc_pass grpc://replicas; }}
  }}
}}
"""


def haproxy_grpc_conf(port, upstreams):
    servers = "\n".join(f"  server s{i} {u} proto h2" for i, u in enumerate(upstreams))
    return HAPROXY_DEFAULTS + f"""
frontend f
  bind 127.0.0.1:{port} proto h2
  default_backend b
backend b
  balance roundrobin
{servers}
"""
