// docs/triton_compatibility.md against a running server: every endpoint of its table is answered
// over HTTP and gRPC as its row says.
#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <set>

#include "base/text.h"
#include "support/both_interfaces.h"

namespace septet::serve {
namespace {

using test_support::HttpClient;
using test_support::HttpReply;
using ::testing::HasSubstr;
using ::testing::Not;

struct Row {
  std::string subject;
  std::string state;
};

std::vector<Row> endpoint_rows() {
  std::ifstream file(SEPTET_SOURCE_DIR "/docs/triton_compatibility.md");
  std::vector<Row> rows;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("## ")) {
      inside = line == "## Endpoints";
    }
    if (inside && line.starts_with("| ") && !line.starts_with("| endpoint")) {
      const std::vector<std::string_view> cells = split(line, '|');
      rows.push_back({std::string(trim(cells.at(1))), std::string(trim(cells.at(2)))});
    }
  }
  return rows;
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
  if (const std::size_t at = text.find(what); at != std::string::npos) {
    text.replace(at, what.size(), with);
  }
  return text;
}

// The targets that a path of the table means: what stands in brackets is there or not.
std::vector<std::string> targets_of(const std::string& path) {
  const std::size_t open = path.find('[');
  if (open == std::string::npos) {
    std::string target = replaced(path, "/models/M", "/models/copy");
    target = replaced(target, "/versions/V", "/versions/1");
    return {replaced(target, "/region/R", "/region/r")};
  }
  const std::size_t close = path.find(']', open);
  std::vector<std::string> targets = targets_of(path.substr(0, open) + path.substr(close + 1));
  for (const std::string& with :
       targets_of(path.substr(0, open) + path.substr(open + 1, close - open - 1) +
                  path.substr(close + 1))) {
    targets.push_back(with);
  }
  return targets;
}

struct Call {
  std::string method;
  std::string target;
};

// `GET /a`, `/b` and `GET, POST /c[/d]/e` as calls; "..." is a model's path, and a path without
// methods is asked for like the one before it.
std::vector<Call> calls_of(const std::string& subject, std::string& methods) {
  const std::string http = subject.substr(0, subject.find("·"));
  const std::vector<std::string_view> pieces = split(http, '`');
  std::vector<Call> calls;
  for (std::size_t i = 1; i < pieces.size(); i += 2) {
    std::string path(pieces[i]);
    if (const std::size_t blank = path.rfind(' '); blank != std::string::npos) {
      methods = path.substr(0, blank);
      path = path.substr(blank + 1);
    }
    if (path.starts_with("/generate")) {
      path = ".../generate_stream";
    }
    path = replaced(path, "...", "/v2/models/M[/versions/V]");
    for (const std::string_view method : split(methods, ',')) {
      for (const std::string& target : targets_of(path)) {
        calls.push_back({std::string(trim(method)), target});
      }
    }
  }
  return calls;
}

HttpReply answer_to(HttpClient& client, const Call& call) {
  return call.method == "GET" ? client.get(call.target) : client.post(call.target, "");
}

// The calls of gRPC that a row names: behind the paths, or alone.
std::vector<std::string> grpc_calls_of(const std::string& subject) {
  const std::size_t dot = subject.find("·");
  std::vector<std::string> calls;
  if (dot == std::string::npos && subject.find('`') != std::string::npos) {
    return calls;
  }
  const std::size_t begin = dot == std::string::npos ? 0 : dot + std::string_view("·").size();
  for (const std::string_view name : split(std::string_view(subject).substr(begin), ',')) {
    calls.emplace_back(trim(name));
  }
  return calls;
}

class CompatibilityEndpoints : public test_support::BothInterfaces {
 protected:
  CompatibilityEndpoints() { server_.add_copy("copy", "TYPE_INT32"); }
};

TEST_F(CompatibilityEndpoints, EveryCallOfGrpcIsAnsweredAsItsRowSays) {
  start({.control = InferenceServerOptions::Control::kExplicit});
  std::set<std::string> asked;

  for (const Row& row : endpoint_rows()) {
    for (const std::string& name : grpc_calls_of(row.subject)) {
      const grpc::Status status = call_by_name(name);
      const bool refused = row.state.starts_with("refused");
      EXPECT_EQ(status.error_code() == grpc::StatusCode::UNIMPLEMENTED, refused)
          << name << " (" << row.state << "): " << status.error_message();
      asked.insert(name);
    }
  }

  const auto* const service =
      test_support::proto::ServerLiveRequest::descriptor()->file()->service(0);
  for (int i = 0; i < service->method_count(); ++i) {
    EXPECT_TRUE(asked.contains(std::string(service->method(i)->name())))
        << service->method(i)->name() << " is not in the table";
  }
}

TEST_F(CompatibilityEndpoints, EveryOneIsAnsweredAsItsRowSays) {
  start({.control = InferenceServerOptions::Control::kExplicit});
  HttpClient& client = *client_;
  std::size_t asked = 0;
  std::string methods = "GET";

  for (const Row& row : endpoint_rows()) {
    for (const Call& call : calls_of(row.subject, methods)) {
      const HttpReply reply = answer_to(client, call);
      const std::string what = fmt::format("{} {} ({}): {} {}", call.method, call.target, row.state,
                                           reply.status, reply.body);
      if (row.state.starts_with("refused: 501")) {
        EXPECT_EQ(reply.status, 501U) << what;
      } else if (row.state.starts_with("404")) {
        EXPECT_EQ(reply.status, 404U) << what;
      } else {
        EXPECT_NE(reply.status, 405U) << what;
        EXPECT_NE(reply.status, 501U) << what;
        EXPECT_THAT(reply.body, Not(HasSubstr(R"("Not Found")"))) << what;
      }
      ++asked;
      client.post("/v2/repository/models/copy/load", "");  // one row unloads it
    }
  }

  EXPECT_GE(asked, 35U);
}

}  // namespace
}  // namespace septet::serve
