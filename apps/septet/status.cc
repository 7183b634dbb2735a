// septet status: what runs where: every partition with its place, memory and processes; with --url
// what a balancer does with its replicas.

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <functional>
#include <memory>

#include "balancer_view.h"
#include "gpu_view.h"
#include "measure/perf_tls_options.h"
#include "output.h"
#include "verb.h"

namespace septet::app {
namespace {

// "4242 worker, 4243 worker": those of one GPU, GPU instance or compute instance.
std::string processes_text(const gpu::GpuState& gpu, const gpu::GpuInstance* instance,
                           const gpu::ComputeInstance* compute) {
  std::string text;
  for (const gpu::GpuProcess& process : gpu.processes) {
    const bool is_here =
        instance == nullptr || (process.gpu_instance == instance->id &&
                                (compute == nullptr || process.compute_instance == compute->id));
    if (is_here) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", process.pid, process.name);
    }
  }
  return text;
}

std::int64_t used_mib(const gpu::GpuState& gpu, const gpu::GpuInstance& instance) {
  std::int64_t bytes = 0;
  for (const gpu::GpuProcess& process : gpu.processes) {
    bytes += process.gpu_instance == instance.id ? process.used_memory_bytes : 0;
  }
  return bytes / (1024 * 1024);
}

Json instance_row(const gpu::GpuState& gpu, const gpu::GpuInstance& instance) {
  Json row = {
      {"gpu", gpu.index},
      {"gpu_instance", instance.id.value()},
      {"compute_instance", nullptr},
      {"profile", fmt::format("profile {}", instance.profile_id.value())},
      {"placement", fmt::format("{}:{}", instance.placement.start, instance.placement.size)},
      {"memory_used_mib", used_mib(gpu, instance)},
      {"memory_total_mib", nullptr},
      {"uuid", ""},
      {"processes", processes_text(gpu, &instance, nullptr)}};
  for (const gpu::GpuInstanceProfile& profile : gpu.profiles) {
    if (profile.id == instance.profile_id) {
      row["profile"] = profile.name;
      row["memory_total_mib"] = profile.memory_mib;
    }
  }
  return row;
}

void add_rows(Json& rows, const gpu::GpuState& gpu) {
  if (gpu.instances.empty()) {
    rows.push_back(
        {{"gpu", gpu.index},
         {"gpu_instance", nullptr},
         {"compute_instance", nullptr},
         {"profile", gpu.mig_current == gpu::MigMode::kEnabled ? "(no instances)" : "(whole GPU)"},
         {"placement", ""},
         {"memory_used_mib", gpu.memory_used_mib},
         {"memory_total_mib", gpu.memory_total_mib},
         {"uuid", gpu.uuid.value()},
         {"processes", processes_text(gpu, nullptr, nullptr)}});
  }
  for (const gpu::GpuInstance& instance : gpu.instances) {
    Json row = instance_row(gpu, instance);
    if (instance.compute_instances.empty()) {
      rows.push_back(row);
    }
    for (const gpu::ComputeInstance& compute : instance.compute_instances) {
      row["compute_instance"] = compute.id.value();
      row["uuid"] = compute.uuid.value();
      row["processes"] = processes_text(gpu, &instance, &compute);
      rows.push_back(row);
    }
  }
}

int print_status(const Globals& globals, const std::string& selector) {
  const auto view = read_gpus(globals, selector);
  if (!view.ok()) {
    return fail(view.error(), globals.output);
  }
  Document document;
  document.schema = "septet.status/1";
  document.fields["driver"] = to_json(view->info);
  document.fields["gpus"] = Json::array();
  document.fields["partitions"] = Json::array();
  for (const gpu::GpuState& gpu : view->gpus) {
    document.fields["gpus"].push_back(to_json(gpu));
    document.heading.push_back(fmt::format("GPU {}: {} ({}), MIG {}, {} / {} MiB", gpu.index,
                                           gpu.name, gpu.pci_bus_id, mode_text(gpu),
                                           gpu.memory_used_mib, gpu.memory_total_mib));
    add_rows(document.fields["partitions"], gpu);
  }
  document.rows = "partitions";
  document.columns = {{"gpu", "GPU", Align::kRight},
                      {"gpu_instance", "GI", Align::kRight},
                      {"compute_instance", "CI", Align::kRight},
                      {"profile", "PROFILE"},
                      {"placement", "PLACE"},
                      {"memory_used_mib", "USED MIB", Align::kRight},
                      {"memory_total_mib", "TOTAL MIB", Align::kRight},
                      {"uuid", "UUID"},
                      {"processes", "PROCESSES"}};
  document.notes = {driver_note(view->info)};
  print(document, globals.output);
  return 0;
}

struct Balancer {
  std::string url;
  std::string authorities_file;
};

Result<measure::ServerAccess> find_balancer(const Balancer& balancer) {
  constexpr std::uint16_t kHttpPort = 8000;
  constexpr std::uint16_t kHttpsPort = 443;
  const bool encrypted = measure::is_https(balancer.url);
  if (!encrypted && !balancer.authorities_file.empty()) {
    return make_error(ErrorKind::kUsage, "--tls-ca has no effect without https://",
                      "write --url https://HOST:PORT, or leave --tls-ca out");
  }
  const Result<os::Endpoint> endpoint =
      os::parse_endpoint(measure::without_https(balancer.url), encrypted ? kHttpsPort : kHttpPort);
  if (!endpoint.ok()) {
    return endpoint.error();
  }
  measure::ServerAccess access{*endpoint};
  if (encrypted) {
    measure::TlsOptions options;
    options.authorities_file = balancer.authorities_file;
    auto tls = measure::TlsContext::create(options, measure::TlsContext::Protocol::kHttp1);
    if (!tls.ok()) {
      return tls.error();
    }
    access.tls = {*std::move(tls), endpoint->host};
  }
  return access;
}

int print_balancer(const Globals& globals, const Balancer& balancer) {
  const Result<measure::ServerAccess> access = find_balancer(balancer);
  if (!access.ok()) {
    return fail(access.error(), globals.output);
  }
  const Result<Document> document = read_balancer(*access);
  if (!document.ok()) {
    return fail(document.error(), globals.output);
  }
  print(*document, globals.output);
  return 0;
}

// Again and again until Ctrl-C; on a terminal in place, else one after the other. An error ends it.
int watch(const std::function<int()>& show, unsigned period_seconds) {
  for (;;) {
    if (::isatty(STDOUT_FILENO) == 1) {
      fmt::print("\033[H\033[2J");
    }
    if (const int code = show(); code != 0) {
      return code;
    }
    std::fflush(stdout);
    ::sleep(period_seconds);
  }
}

}  // namespace

void add_status(CLI::App& app, const Globals& globals, Action& action) {
  const auto selector = std::make_shared<std::string>();
  CLI::App* verb = app.add_subcommand("status", "Show what runs where");
  verb->add_option("gpu", *selector, "GPUs: index, UUID, PCI bus id, name; several with commas")
      ->type_name("GPU");
  const auto balancer = std::make_shared<Balancer>();
  CLI::Option* const url =
      verb->add_option("--url", balancer->url, "Show the balancer that listens there instead")
          ->type_name("[https://]HOST:PORT|unix:/PATH");
  verb->add_option("--tls-ca", balancer->authorities_file,
                   "Authorities that may have signed its certificate (PEM); else this machine's")
      ->needs(url)
      ->type_name("FILE");
  const auto period = std::make_shared<unsigned>(0);
  verb->add_option("--watch", *period, "Show it again every so many seconds")
      ->expected(0, 1)
      ->default_str("2")
      ->check(CLI::Range(1U, 3600U))
      ->type_name("SECONDS");
  verb->callback([&globals, &action, selector, balancer, period] {
    action = [&globals, selector, balancer, period] {
      const std::function<int()> show = [&] {
        return balancer->url.empty() ? print_status(globals, *selector)
                                     : print_balancer(globals, *balancer);
      };
      return *period == 0 ? show() : watch(show, *period);
    };
  });
}

}  // namespace septet::app
