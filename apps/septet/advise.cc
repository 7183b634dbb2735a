// septet advise: which way to share a GPU fits the stated work, with reasons, and why the others
// were rejected.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>

#include "base/text.h"
#include "base/units.h"
#include "gpu/gpu_model.h"
#include "output.h"
#include "partition/advisor.h"
#include "partition/advisor_node.h"
#include "verb.h"

namespace septet::app {
namespace {

using partition::Advice;
using partition::Demand;
using partition::Node;
using partition::Option;
using partition::Rejection;
using partition::Technique;
using partition::WorkKind;

constexpr unsigned kMostTenants = 1000;

// The words as typed; read into Node and Demand by read_node() and read_demand().
struct Words {
  std::string gpu;
  std::string kind = "interactive";
  unsigned tenants = 1;
  std::string memory = "2GiB";
  std::string share;  // "25%" or a number of multiprocessors
  std::string duty = "30%";
  std::string trust = "team";
  bool vm = false;
  std::string target;
  std::string alone;
  std::string mig = "changeable";
  unsigned driver = 580;
  unsigned cuda = 13000;
  bool no_mps = false;
  bool dmem = false;
  bool vgpu_host = false;
  bool preload = false;
  bool several_users = false;
  std::string host_memory = "0";
  bool tables = false;
};

Error bad_word(std::string_view option, std::string_view value, std::string_view allowed) {
  return make_error(ErrorKind::kUsage, fmt::format("{} cannot be '{}'", option, value),
                    fmt::format("it is {}", allowed));
}

Result<Node> read_node(const Words& words, const Globals& globals) {
  const std::string& name = words.gpu.empty() ? globals.simulate : words.gpu;
  if (name.empty()) {
    return make_error(ErrorKind::kUsage, "no GPU is named",
                      "name a model, such as septet advise --gpu H200");
  }
  const Result<const gpu::GpuModel*> model = gpu::find_gpu_model(name);
  SEPTET_TRY(model);
  Node node = partition::node_for(**model);
  if (words.mig == "on") {
    node.mig = partition::MigAvailability::kOn;
  } else if (words.mig == "changeable") {
    node.mig = partition::MigAvailability::kChangeable;
  } else if (words.mig != "locked") {
    return bad_word("--mig", words.mig, "on, changeable or locked");
  }
  const Result<std::int64_t> host_memory = parse_memory_mib(words.host_memory);
  SEPTET_TRY(host_memory);
  node.host_memory_mib = *host_memory;
  node.driver_major = words.driver;
  node.cuda_version = words.cuda;
  node.has_mps = !words.no_mps;
  node.has_dmem = words.dmem;
  node.has_vgpu_host = words.vgpu_host;
  node.may_preload = words.preload;
  node.serves_several_users = words.several_users;
  return node;
}

// "25%" -> 0.25.
Result<double> read_percent(std::string_view option, std::string_view text) {
  const bool has_sign = text.ends_with('%');
  const auto number = parse_double(has_sign ? text.substr(0, text.size() - 1) : text);
  if (!has_sign || !number || *number <= 0 || *number > 100) {
    return bad_word(option, text, "a percentage above 0 % and up to 100 %, such as 30%");
  }
  return *number / 100;
}

Result<unsigned> read_share(const Words& words, const Node& node) {
  if (words.share.empty()) {
    return std::max(1U, node.multiprocessors / std::max(1U, words.tenants));
  }
  if (const auto count = parse_uint(words.share)) {
    if (*count < 1 || *count > node.multiprocessors) {
      return bad_word("--share", words.share,
                      fmt::format("a number of multiprocessors from 1 to {}, or a percentage",
                                  node.multiprocessors));
    }
    return static_cast<unsigned>(*count);
  }
  const Result<double> part = read_percent("--share", words.share);
  SEPTET_TRY(part);
  return std::max(1U, static_cast<unsigned>(std::lround(*part * node.multiprocessors)));
}

Result<std::optional<double>> read_milliseconds(std::string_view text) {
  if (text.empty()) {
    return std::optional<double>();
  }
  const Result<Duration> duration = parse_duration(text);
  SEPTET_TRY(duration);
  return std::optional<double>(to_seconds(*duration) * 1000);
}

Result<Demand> read_demand(const Words& words, const Node& node) {
  Demand demand;
  const auto kind = partition::parse_work_kind(words.kind);
  if (!kind) {
    return bad_word("--kind", words.kind, "latency, interactive, performance or low");
  }
  demand.kind = *kind;
  if (words.trust == "one-process") {
    demand.trust = partition::Trust::kOneProcess;
  } else if (words.trust == "strangers") {
    demand.trust = partition::Trust::kStrangers;
  } else if (words.trust != "team") {
    return bad_word("--trust", words.trust, "one-process, team or strangers");
  }
  if (words.tenants < 1 || words.tenants > kMostTenants) {
    return bad_word("--tenants", std::to_string(words.tenants),
                    fmt::format("a number from 1 to {}", kMostTenants));
  }
  const Result<std::int64_t> memory = parse_memory_mib(words.memory);
  SEPTET_TRY(memory);
  const Result<unsigned> share = read_share(words, node);
  SEPTET_TRY(share);
  const Result<double> duty = read_percent("--busy", words.duty);
  SEPTET_TRY(duty);
  demand.jobs.assign(words.tenants, {*memory, *share, *duty});
  demand.needs_vm = words.vm;
  const auto target = read_milliseconds(words.target);
  SEPTET_TRY(target);
  const auto alone = read_milliseconds(words.alone);
  SEPTET_TRY(alone);
  demand.target_p99_ms = *target;
  demand.alone_ms = *alone;
  return demand;
}

Json plan_json(const partition::SharingPlan& plan) {
  Json json;
  json["text"] = plan.text;
  for (const partition::PlannedInstance& instance : plan.instances) {
    json["instances"].push_back({{"profile", instance.profile},
                                 {"start", instance.placement.start},
                                 {"size", instance.placement.size},
                                 {"tenants", instance.tenants}});
  }
  if (plan.thread_percent) {
    json["thread_percent"] = *plan.thread_percent;
  }
  if (!plan.memory_limits_mib.empty()) {
    json["memory_limits_mib"] = plan.memory_limits_mib;
  }
  if (!plan.chunks.empty()) {
    json["chunks"] = plan.chunks;
  }
  if (plan.slice_length) {
    json["slice_length"] = to_string(*plan.slice_length);
  }
  return json;
}

Json option_json(const Option& option) {
  return {{"technique", to_string(option.technique)},
          {"score", std::round(option.score * 10) / 10},
          {"latency_factor", option.latency_factor},
          {"utilisation", option.utilisation},
          {"fit", option.verdict.fit == partition::Fit::kYes ? "yes" : "conditional"},
          {"plan", plan_json(option.plan)},
          {"reasons", option.reasons},
          {"warnings", option.warnings}};
}

// What was taken for granted about the machine, so that a reader can contradict.
std::string assumptions(const Node& node) {
  std::vector<std::string> words = {fmt::format("driver {}", node.driver_major)};
  words.emplace_back(node.mig == partition::MigAvailability::kOn ? "MIG on"
                     : node.mig == partition::MigAvailability::kChangeable
                         ? "MIG mode may be changed"
                         : "MIG mode locked");
  words.emplace_back(node.has_mps ? "MPS installed" : "no MPS");
  if (node.serves_several_users) {
    words.emplace_back("several users");
  }
  return "assuming " + join_words(words) + " (see septet advise --help to state otherwise)";
}

Document advice_document(const Node& node, const Demand& demand, const Advice& advice) {
  Document document;
  document.schema = "septet.advice/1";
  document.fields["gpu"] = node.gpu_name;
  document.fields["kind"] = to_string(demand.kind);
  document.fields["tenants"] = demand.jobs.size();
  document.fields["options"] = Json::array();
  document.fields["rejected"] = Json::array();
  document.heading = {fmt::format("{} tenants, {}, on {}", demand.jobs.size(),
                                  to_string(demand.kind), node.gpu_name),
                      assumptions(node)};
  for (const Option& option : advice.options) {
    Json json = option_json(option);
    json["set_up"] = option.plan.text;
    document.fields["options"].push_back(std::move(json));
  }
  if (!advice.options.empty()) {
    const Option& best = advice.options.front();
    document.notes.push_back(
        fmt::format("why {}: {}", to_string(best.technique), join_words(best.reasons)));
    for (const std::string& warning : best.warnings) {
      document.notes.push_back("mind: " + warning);
    }
  }
  for (const Rejection& rejection : advice.rejections) {
    std::vector<std::string> words;
    for (const std::string& code : rejection.codes) {
      words.push_back(partition::explain_code(code));
    }
    document.fields["rejected"].push_back({{"technique", to_string(rejection.technique)},
                                           {"codes", rejection.codes},
                                           {"reasons", words}});
    std::string line;
    for (const std::string& word : words) {
      line += (line.empty() ? "" : "; ") + word;
    }
    document.notes.push_back(fmt::format("not {}: {}", to_string(rejection.technique), line));
  }
  document.rows = "options";
  document.columns = {{"technique", "TECHNIQUE"},
                      {"score", "SCORE", Align::kRight},
                      {"fit", "FIT"},
                      {"set_up", "SET-UP"}};
  return document;
}

// The two tables teams choose by: isolation per technique, fit per kind of work.
Document tables_document() {
  Document document;
  document.schema = "septet.techniques/1";
  document.fields["techniques"] = Json::array();
  for (const Technique technique : partition::kTechniques) {
    const partition::Isolation& facts = isolation(technique);
    Json row = {{"technique", to_string(technique)},
                {"memory", facts.memory},
                {"compute", facts.compute},
                {"faults", facts.faults},
                {"parts", facts.parts},
                {"needs", facts.needs},
                {"priority", facts.priority}};
    for (const WorkKind kind : partition::kWorkKinds) {
      const partition::Verdict found = verdict(kind, technique);
      row[to_string(kind)] = found.fit == partition::Fit::kYes ? std::string("yes")
                             : found.fit == partition::Fit::kNo
                                 ? std::string("no")
                                 : std::string("if: ") + found.condition;
    }
    document.fields["techniques"].push_back(std::move(row));
  }
  document.rows = "techniques";
  document.columns = {{"technique", "TECHNIQUE"},
                      {"latency", "LATENCY"},
                      {"interactive", "INTERACTIVE"},
                      {"performance", "PERFORMANCE"},
                      {"low", "LOW"},
                      {"memory", "MEMORY"},
                      {"faults", "FAULTS"}};
  return document;
}

int advise(const Words& words, const Globals& globals) {
  if (words.tables) {
    print(tables_document(), globals.output);
    return 0;
  }
  const Result<Node> node = read_node(words, globals);
  if (!node.ok()) {
    return fail(node.error(), globals.output);
  }
  const Result<Demand> demand = read_demand(words, *node);
  if (!demand.ok()) {
    return fail(demand.error(), globals.output);
  }
  const Advice advice = recommend(*node, *demand);
  print(advice_document(*node, *demand, advice), globals.output);
  return advice.options.empty() ? exit_code(ErrorKind::kNoCapacity) : 0;
}

}  // namespace

void add_advise(CLI::App& app, const Globals& globals, Action& action) {
  CLI::App* verb = app.add_subcommand("advise", "Say which sharing technique fits, and why");
  const auto words = std::make_shared<Words>();
  verb->add_option("--gpu", words->gpu, "GPU model, such as H200")->type_name("MODEL");
  verb->add_option("--kind", words->kind, "latency, interactive, performance or low");
  verb->add_option("--tenants", words->tenants, "How many share the GPU");
  verb->add_option("--memory", words->memory, "Memory of each, such as 4GB");
  verb->add_option("--share", words->share, "What each can use: 25% or a number of SMs");
  verb->add_option("--busy", words->duty, "Share of time each has work, such as 30%");
  verb->add_option("--trust", words->trust, "one-process, team or strangers");
  verb->add_flag("--vm", words->vm, "Tenants are virtual machines");
  verb->add_option("--target", words->target, "Latency target (p99), such as 20ms");
  verb->add_option("--alone", words->alone, "Latency of one tenant alone, such as 6.5ms");
  verb->add_option("--mig", words->mig, "MIG mode: on, changeable or locked");
  verb->add_option("--driver", words->driver, "Driver's major version");
  verb->add_option("--cuda", words->cuda, "CUDA version, such as 13000");
  verb->add_flag("--no-mps", words->no_mps, "nvidia-cuda-mps-control is not installed");
  verb->add_flag("--dmem", words->dmem, "Control groups v2 with the dmem controller");
  verb->add_flag("--vgpu-host", words->vgpu_host, "The vGPU host driver is installed");
  verb->add_flag("--preload", words->preload, "A library may be preloaded into tenants");
  verb->add_flag("--several-users", words->several_users, "Tenants run under different users");
  verb->add_option("--host-memory", words->host_memory, "Memory of the machine, such as 256GB");
  verb->add_flag("--techniques", words->tables, "Print what each technique isolates and fits");
  verb->callback([words, &globals, &action] {
    action = [words, &globals] { return advise(*words, globals); };
  });
}

}  // namespace septet::app
