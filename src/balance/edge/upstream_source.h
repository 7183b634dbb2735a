// UpstreamSource: the set of replicas as words, a file and DNS give it, read again at any time.
//
//   unix:/run/r0.sock                        a Unix socket
//   10.0.0.7:8000                            a host and port
//   dns:replicas.default.svc:8000            every address of the name (a headless service)
//   unix:/run/r1.sock name=MIG-1 models=a,b  in a file, one a line, # begins a comment
//   unix:/run/r2.sock grpc=unix:/run/r2.grpc where its gRPC server is; without, it takes no calls
//   dns:replicas.default.svc:8000 grpc=8001  a port of the same host
//
// Owned by the verb; any one thread. Looking a name up blocks, so this stays off the reactor.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "balance/edge/proxy.h"

namespace septet::balance {

class UpstreamSource {
 public:
  // Words as above; file may be empty. Read when read() is called, the file too.
  UpstreamSource(std::vector<std::string> words, std::string file)
      : words_(std::move(words)), file_(std::move(file)) {}

  // The set as it is now, in the order given, an address twice only once. kUsage names the word or
  // the line that is wrong, kNotFound the name that does not resolve or the file that is missing.
  Result<std::vector<Upstream>> read() const;

 private:
  std::vector<std::string> words_;
  std::string file_;
};

// One line of the file or one word; several upstreams when it names a DNS name.
Result<std::vector<Upstream>> parse_upstream(std::string_view line);

}  // namespace septet::balance
