// UpstreamKeeper: the set of replicas in use: read again from its sources, changed by request.
//
// Owned by the verb; any thread. A set that cannot be read leaves the one in use as it is.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "balance/edge/upstream_source.h"
#include "balance/upstream_change.h"

namespace septet::balance {

class UpstreamKeeper {
 public:
  // Puts a set to use that differs from the one before; called by one thread at a time.
  using Use = std::function<Result<Ok>(const std::vector<Upstream>&)>;

  // lines as UpstreamSource takes them; file may be empty; in_use is in use already.
  UpstreamKeeper(std::vector<std::string> lines, std::string file, std::vector<Upstream> in_use,
                 Use use);

  // Reads file and names again.
  Result<Ok> refresh();
  // Changes the lines; the file's are not touched. On an error nothing has changed.
  Result<Ok> change(const UpstreamChange& change);
  // {"schema":"septet.upstreams/1","upstreams":[{"name":...,"address":...}],"given":[LINE,...]}
  std::string json() const;

 private:
  Result<Ok> take(const std::vector<std::string>& lines);

  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
  const std::string file_;
  std::vector<Upstream> in_use_;
  const Use use_;
};

}  // namespace septet::balance
