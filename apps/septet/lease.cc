// septet lease, queue and env: leases without a command, who holds what, who waits, and what a
// program needs to see.

#include <fmt/format.h>

#include <ctime>
#include <memory>

#include "agent/edge/error_json.h"
#include "agent/edge/lease_client.h"
#include "lease_words.h"
#include "lend/environment.h"

namespace septet::app {
namespace {

using agent::LeaseClient;

LeaseClient client() { return LeaseClient(agent::lease_socket_path()); }

void add_note(Document& document, const Json& answer) {
  document.fields["note"] = answer.value("note", std::string());
  if (const std::string note = answer.value("note", std::string()); !note.empty()) {
    document.notes.push_back(note);
  }
}

// What every row about a lease shows, flat.
Json row_of(const Json& lease) {
  Json row = lease;
  row["user"] = lease["owner"]["user"];
  row["slice"] = lease["request"]["slice"];
  row["purpose"] = lease["request"]["purpose"];
  row["priority"] = lease["request"]["priority"];
  row["partition"] = partition_text(lease);
  return row;
}

int list(const std::string& user, const Globals& globals) {
  const auto answer = client().call("GET", user.empty() ? "/v1/leases" : "/v1/leases?user=" + user);
  if (!answer.ok()) {
    return fail(answer.error(), globals.output);
  }
  Document document;
  document.schema = "septet.leases/1";
  document.rows = "leases";
  document.fields["leases"] = Json::array();
  for (const Json& lease : (*answer)["leases"]) {
    Json row = row_of(lease);
    row["ends"] = !lease.contains("expires_in_s")    ? std::string("-")
                  : lease.value("open_ended", false) ? std::string("open")
                                                     : relative_time(lease["expires_in_s"]);
    for (const lend::Json& holding : lease["holdings"]) {
      for (const lend::Json& pid : holding.value("outside", lend::Json::array())) {
        document.notes.push_back(
            fmt::format("process {} on {} runs without the limits of its share", pid.get<int>(),
                        holding.value("index", "?")));
      }
    }
    row["idle"] = lease.contains("idle_s") ? relative_time(-lease["idle_s"].get<double>()) : "-";
    document.fields["leases"].push_back(std::move(row));
  }
  document.columns = {{"id", "LEASE", Align::kRight}, {"user", "USER"},     {"slice", "SLICE"},
                      {"partition", "PARTITION"},     {"state", "STATE"},   {"ends", "ENDS"},
                      {"idle", "LAST BUSY"},          {"limits", "LIMITS"}, {"purpose", "PURPOSE"}};
  add_note(document, *answer);
  print(document, globals.output);
  return 0;
}

int queue(const Globals& globals) {
  const auto answer = client().call("GET", "/v1/queue");
  if (!answer.ok()) {
    return fail(answer.error(), globals.output);
  }
  Document document;
  document.schema = "septet.queue/1";
  document.rows = "queue";
  document.fields["queue"] = Json::array();
  for (const Json& lease : (*answer)["queue"]) {
    Json row = row_of(lease);
    row["waited"] = relative_time(-lease["waited_s"].get<double>());
    row["why"] = lease.value("waits_for_quota", false) ? "quota" : "nothing free";
    document.fields["queue"].push_back(std::move(row));
  }
  document.columns = {{"position", "PLACE", Align::kRight},
                      {"id", "LEASE", Align::kRight},
                      {"user", "USER"},
                      {"slice", "SLICE"},
                      {"priority", "PRIORITY"},
                      {"waited", "SINCE"},
                      {"why", "WAITS FOR"},
                      {"purpose", "PURPOSE"}};
  add_note(document, *answer);
  print(document, globals.output);
  return 0;
}

std::string local_time(std::int64_t unix_ns) {
  if (unix_ns == 0) {
    return "-";
  }
  const std::time_t when = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  std::tm parts{};
  localtime_r(&when, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return text.data();
}

int history(unsigned limit, const std::string& user, const Globals& globals) {
  std::string path = fmt::format("/v1/history?limit={}", limit);
  if (!user.empty()) {
    path += "&user=" + user;
  }
  const auto answer = client().call("GET", path);
  if (!answer.ok()) {
    return fail(answer.error(), globals.output);
  }
  Document document;
  document.schema = "septet.history/1";
  document.rows = "leases";
  document.fields["leases"] = Json::array();
  for (const Json& lease : (*answer)["leases"]) {
    Json row = row_of(lease);
    row["from"] = local_time(lease["granted_ns"]);
    row["to"] = local_time(lease["ended_ns"]);
    document.fields["leases"].push_back(std::move(row));
  }
  document.columns = {{"id", "LEASE", Align::kRight},
                      {"user", "USER"},
                      {"slice", "SLICE"},
                      {"from", "FROM"},
                      {"to", "TO"},
                      {"reason", "ENDED"},
                      {"purpose", "PURPOSE"}};
  add_note(document, *answer);
  print(document, globals.output);
  return 0;
}

int acquire(const LeaseWords& words, const Globals& globals) {
  Result<lend::Json> request = request_json(words);
  if (!request.ok()) {
    return fail(request.error(), globals.output);
  }
  (*request)["stream"] = true;
  LeaseClient daemon = client();
  const auto stream = daemon.stream("/v1/leases", *request);
  if (!stream.ok()) {
    return fail(stream.error(), globals.output);
  }
  constexpr Duration kPatience = std::chrono::hours(24 * 365);
  for (;;) {
    const auto news = (*stream)->next(kPatience);
    if (!news.ok()) {
      return fail(news.error(), globals.output);
    }
    if (!news->has_value()) {
      return fail(make_error(ErrorKind::kFailed, "the lease daemon ended before it answered"),
                  globals.output);
    }
    const Json& json = **news;
    const std::string event = json.value("event", std::string());
    if (event == "refused") {
      return fail(agent::error_from_json(json), globals.output);
    }
    if (event == "queued") {
      fmt::print(stderr, "septet: lease {} waits, number {} in the queue\n",
                 json["id"].get<std::uint64_t>(), json["position"].get<unsigned>());
    } else if (event == "granted") {
      Document document;
      document.schema = "septet.lease/1";
      document.rows = "leases";
      document.fields["leases"] = Json::array({row_of(json["lease"])});
      document.fields["variables"] = json["variables"];
      document.columns = {{"id", "LEASE", Align::kRight},
                          {"slice", "SLICE"},
                          {"partition", "PARTITION"},
                          {"limits", "LIMITS"}};
      document.notes.push_back(fmt::format("eval \"$(septet env {})\" sets it up in a shell",
                                           json["lease"]["id"].get<std::uint64_t>()));
      add_note(document, json);
      print(document, globals.output);
      return 0;
    }
  }
}

int show_answer(const Result<lend::Json>& answer, const std::string& done, const Globals& globals) {
  if (!answer.ok()) {
    return fail(answer.error(), globals.output);
  }
  if (globals.output == OutputFormat::kTable) {
    fmt::print("{}\n", done);
  } else {
    Document document;
    document.schema = "septet.lease/1";
    document.fields.update(*answer);
    print(document, globals.output);
  }
  return 0;
}

int environment(std::uint64_t id, const std::string& format, const Globals& globals) {
  const auto answer = client().call("GET", fmt::format("/v1/leases/{}", id));
  if (!answer.ok()) {
    return fail(answer.error(), globals.output);
  }
  if (format == "json") {
    return show_answer(answer, answer->dump(2), globals);
  }
  const auto& texts = (*answer)["environment"];
  if (!texts.contains(format)) {
    return fail(make_error(ErrorKind::kUsage, fmt::format("there is no format '{}'", format),
                           "write sh, json, docker, podman, slurm or cdi"),
                globals.output);
  }
  fmt::print("{}", texts[format].get<std::string>());
  return 0;
}

struct Words {
  LeaseWords lease;
  std::uint64_t id = 0;
  std::string time;
  std::string user;
  std::string format = "sh";
  unsigned limit = 20;
};

void add_with_id(CLI::App* verb, Words& words) {
  verb->add_option("id", words.id, "Number of the lease")->required()->type_name("ID");
}

}  // namespace

void add_lease(CLI::App& app, const Globals& globals, Action& action) {
  CLI::App* verb = app.add_subcommand("lease", "Borrow, renew and give back; who holds what");
  verb->require_subcommand(1);
  verb->fallthrough();
  const auto words = std::make_shared<Words>();
  const auto on_call = [&](CLI::App* sub, std::function<int()> work) {
    sub->callback([&action, work = std::move(work)] { action = work; });
  };
  CLI::App* sub = verb->add_subcommand("acquire", "Borrow a slice until it is released");
  add_lease_options(*sub, words->lease);
  on_call(sub, [words, &globals] { return acquire(words->lease, globals); });

  sub = verb->add_subcommand("renew", "Keep a lease longer");
  add_with_id(sub, *words);
  sub->add_option("--for", words->time, "From now on")->required()->type_name("TIME");
  on_call(sub, [words, &globals] {
    return show_answer(
        client().call("PUT", fmt::format("/v1/leases/{}", words->id), {{"time", words->time}}),
        fmt::format("lease {} now ends in {}", words->id, words->time), globals);
  });

  sub = verb->add_subcommand("release", "Give a slice back; its processes are asked to end");
  add_with_id(sub, *words);
  on_call(sub, [words, &globals] {
    return show_answer(client().call("DELETE", fmt::format("/v1/leases/{}", words->id)),
                       fmt::format("lease {} is given back", words->id), globals);
  });

  sub = verb->add_subcommand("list", "What runs and waits");
  sub->add_option("--user", words->user, "Only this user's");
  on_call(sub, [words, &globals] { return list(words->user, globals); });

  sub = verb->add_subcommand("show", "One lease with its environment");
  add_with_id(sub, *words);
  on_call(sub, [words, &globals] { return environment(words->id, "json", globals); });

  sub = verb->add_subcommand("history", "Leases that have ended, the youngest first");
  sub->add_option("--limit", words->limit, "How many");
  sub->add_option("--user", words->user, "Only this user's");
  on_call(sub, [words, &globals] { return history(words->limit, words->user, globals); });
}

void add_queue(CLI::App& app, const Globals& globals, Action& action) {
  app.add_subcommand("queue", "Who waits for a slice, first in line first")
      ->callback([&globals, &action] { action = [&globals] { return queue(globals); }; });
}

void add_env(CLI::App& app, const Globals& globals, Action& action) {
  CLI::App* verb = app.add_subcommand("env", "What a program on a lease needs to see");
  const auto words = std::make_shared<Words>();
  add_with_id(verb, *words);
  verb->add_option("--format", words->format, "sh, json, docker, podman, slurm or cdi");
  verb->callback([words, &globals, &action] {
    action = [words, &globals] { return environment(words->id, words->format, globals); };
  });
}

}  // namespace septet::app
