// septet compare: the whole experiment: techniques x replicas x concurrency -> files, charts, a
// verdict.

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <ctime>
#include <filesystem>
#include <map>

#include "agent/edge/experiment.h"
#include "agent/edge/isolation_run.h"
#include "base/text.h"
#include "base/units.h"
#include "compare_progress.h"
#include "compare_repository.h"
#include "gpu/edge/open_driver.h"
#include "os/durable_file.h"
#include "os/guardian.h"
#include "os/interrupt.h"
#include "os/machine.h"
#include "os/owned_folder.h"
#include "os/process.h"
#include "output.h"
#include "verbs.h"

namespace septet::app {
namespace {

namespace fs = std::filesystem;

struct CompareWords {
  std::vector<std::string> techniques;
  std::vector<std::string> profiles;
  std::string replicas;
  std::string concurrency;
  std::string model = "densenet_onnx";
  std::string repository;
  std::string window;
  std::string out;
  bool quick = false;
  bool isolation = false;
  std::uint64_t seed = 1;
  unsigned gpu = 0;
};

// What the four-minute run measures, and what a thorough one does.
struct Scale {
  const char* replicas;
  const char* concurrency;
  Duration window;
  int windows;
  Duration warm_up;
};
constexpr Scale kQuick = {"1,2,4,7", "1,2,4,8,16", milliseconds(1700), 3, milliseconds(700)};
constexpr Scale kThorough = {"1:7", "1,2,4,7,10,14,20,28,40,56,80,100", seconds(3), 8, seconds(2)};

std::string default_out() {
  return fmt::format("septet-compare-{:%Y%m%d-%H%M%S}", fmt::localtime(std::time(nullptr)));
}

int terminal_width() {
  winsize size{};
  constexpr int kDefault = 100;
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kDefault;
}

// One run of the verb: everything that is made once and used by every configuration.
class Compare {
 public:
  Compare(const CompareWords& words, const Globals& globals)
      : words_(words), globals_(globals), scale_(words.quick ? kQuick : kThorough) {}

  Result<int> run() {
    SEPTET_TRY(prepare());
    if (words_.isolation) {
      return run_isolation();
    }
    return run_experiment();
  }

 private:
  // In the order that matters: the guardian and the driver, which sets the environment, come before
  // the first thread.
  Result<Ok> prepare() {
    Result<std::string> repository = find_repository(words_.repository);
    if (!repository.ok()) {
      return repository.error();
    }
    SEPTET_TRY(check_model(*repository, words_.model));
    SEPTET_TRY(plan_request());
    os::sweep_folders();
    SEPTET_TRY(find_limits());
    SEPTET_TRY(make_runtime());
    SEPTET_TRY(open_gpu());
    auto interrupt = os::Interrupt::start();
    if (!interrupt.ok()) {
      return interrupt.error();
    }
    interrupt_ = *std::move(interrupt);
    deployment_.program = os::own_program_path();
    deployment_.model_repository = *std::move(repository);
    deployment_.model = words_.model;
    deployment_.runtime_folder = runtime_->path();
    deployment_.state_folder = runtime_->path() + "/state";
    deployment_.gpu = words_.gpu;
    deployment_.cgroups = cgroups_;
    deployment_.machine = {.cpus = os::available_cpus(cgroups_.value_or(os::CgroupMounts{})),
                           .memory_bytes = machine_.memory_bytes};
    out_ = words_.out.empty() ? default_out() : words_.out;
    return Ok{};
  }

  Result<Ok> plan_request() {
    const bool isolation = words_.isolation;
    const bool profiles = !words_.profiles.empty();
    const std::string replicas = !words_.replicas.empty() || profiles ? words_.replicas
                                 : isolation                          ? "7"
                                                                      : scale_.replicas;
    const std::string concurrency =
        words_.concurrency.empty() ? scale_.concurrency : words_.concurrency;
    auto parsed_replicas = replicas.empty() ? std::vector<int>{}  // as many as fit
                                            : agent::parse_numbers(replicas, "--replicas");
    auto parsed_concurrency = agent::parse_numbers(concurrency, "--concurrency");
    if (!parsed_replicas.ok() || !parsed_concurrency.ok()) {
      return parsed_replicas.ok() ? parsed_concurrency.error() : parsed_replicas.error();
    }
    std::vector<std::string> techniques = words_.techniques;
    if (profiles && techniques.empty()) {
      techniques = {"mig"};
    }
    request_ = {.techniques = std::move(techniques),
                .replicas = *std::move(parsed_replicas),
                .concurrency = *std::move(parsed_concurrency),
                .profiles = words_.profiles,
                .undivided_at_most_only = words_.quick};
    window_ = scale_.window;
    if (!words_.window.empty()) {
      const Result<Duration> window = parse_duration(words_.window);
      if (!window.ok()) {
        return window.error();
      }
      window_ = *window;
    }
    return Ok{};
  }

  Result<Ok> find_limits() {
    if (globals_.simulate.empty()) {
      return Ok{};  // a real GPU limits its slices itself
    }
    const Result<os::CgroupMounts> found = os::find_cgroups();
    if (found.ok()) {
      cgroups_ = *found;
      os::sweep_cgroups(*found);
    } else {
      fmt::print(stderr, "septet: going on without limits per slice: {}\n", found.error().text());
    }
    return Ok{};
  }

  Result<Ok> make_runtime() {
    auto guardian = os::Guardian::start(cgroups_);
    if (!guardian.ok()) {
      return guardian.error();
    }
    guardian_ = *std::move(guardian);
    auto runtime = os::OwnedFolder::create("compare");
    if (!runtime.ok()) {
      return runtime.error();
    }
    runtime_ = *std::move(runtime);
    return Ok{};
  }

  // A simulated node of our own: what the user has laid out on theirs stays as it is.
  Result<Ok> open_gpu() {
    setenv("SEPTET_SIM_ROOT", (runtime_->path() + "/sim").c_str(), 1);
    auto driver = gpu::open_driver(globals_.simulate);
    if (!driver.ok()) {
      return driver.error();
    }
    driver_ = *std::move(driver);
    const Result<gpu::DriverInfo> info = driver_->info();
    const Result<gpu::GpuState> state = driver_->observe(words_.gpu);
    if (!info.ok() || !state.ok()) {
      return info.ok() ? state.error() : info.error();
    }
    if (!info->simulated && !globals_.yes) {
      return make_error(
          ErrorKind::kPrecondition,
          fmt::format("this changes the partitions of GPU {} ({})", words_.gpu, state->name),
          "add --yes if nobody needs them, or --simulate A100-SXM4-40GB to use a simulated GPU");
    }
    simulated_ = info->simulated;
    gpu_name_ = state->name;
    agent::ExperimentDevice device = agent::experiment_device(*state, simulated_);
    device.limited = !simulated_ || cgroups_.has_value();
    profile_ = device.smallest_profile;
    for (const auto& [name, room] : device.profiles) {
      instances_[name] = static_cast<int>(room);
    }
    auto plan = agent::plan_experiment(request_, device);
    if (!plan.ok()) {
      return plan.error();
    }
    plan_ = *std::move(plan);
    return Ok{};
  }

  Result<int> run_experiment() {
    agent::ExperimentOptions options;
    options.deployment = deployment_;
    options.out_folder = out_;
    options.rules.window = window_;
    options.rules.window_stretch = 1;
    options.rules.max_windows = scale_.windows;
    options.rules.warm_up = scale_.warm_up;
    options.context = {.seed = words_.seed,
                       .machine = machine_.text(),
                       .commit = commit(),
                       .model = words_.model,
                       .profile = profile_,
                       .gpu = gpu_name_,
                       .simulated = simulated_,
                       .limited = !simulated_ || cgroups_.has_value()};
    options.report.instances = instances_;
    options.report.command = os::own_command_line();
    options.report.measured_at =
        fmt::format("{:%Y-%m-%d %H:%M} UTC", fmt::gmtime(std::time(nullptr)));
    CompareProgress progress;
    progress.say(fmt::format(
        "septet: {} configurations x {} levels of load on {}{}, model {}; results go to {}",
        plan_.configurations.size(), plan_.concurrency.size(), gpu_name_,
        simulated_ ? " (simulated)" : "", words_.model, out_));
    auto result = agent::run_experiment(
        *driver_, plan_, options, interrupt_->requested(),
        [&progress](const agent::ExperimentProgress& news) { progress.tell(news); });
    if (!result.ok()) {
      return result.error();
    }
    return say_results(*result, progress);
  }

  Result<int> say_results(const agent::ExperimentResult& result, CompareProgress& progress) {
    progress.say(result.interrupted ? "septet: interrupted; what was measured is kept"
                                    : "septet: measured");
    if (result.report.rows.empty()) {
      return make_error(ErrorKind::kFailed, "nothing was measured",
                        "the replicas' logs are in " + out_);
    }
    if (globals_.output == OutputFormat::kTable) {
      fmt::print("{}", measure::report_text(result.report, terminal_width()));
    } else {
      print_rows(result.report.rows);
    }
    fmt::print(stderr, "septet: report: {}\n", fs::absolute(out_ + "/report.html").string());
    return result.interrupted ? 130 : result.failed_configurations > 0 ? 1 : 0;
  }

  void print_rows(const std::vector<measure::ResultRow>& rows) const {
    Document document;
    document.schema = "septet.compare/1";
    document.rows = "results";
    document.columns = {{"technique", "TECHNIQUE"},
                        {"replicas", "REPLICAS", Align::kRight},
                        {"concurrency", "CONCURRENCY", Align::kRight},
                        {"throughput", "INFER/SEC", Align::kRight},
                        {"p50_us", "P50 US", Align::kRight},
                        {"p90_us", "P90 US", Align::kRight},
                        {"errors", "ERRORS", Align::kRight}};
    document.fields["gpu"] = gpu_name_;
    document.fields["simulated"] = simulated_;
    document.fields["model"] = words_.model;
    document.fields["folder"] = out_;
    Json& results = document.fields["results"] = Json::array();
    for (const measure::ResultRow& row : rows) {
      results.push_back({{"technique", row.context.technique},
                         {"replicas", row.context.replicas},
                         {"concurrency", row.concurrency},
                         {"throughput", row.throughput},
                         {"p50_us", row.p50_us},
                         {"p90_us", row.p90_us},
                         {"p95_us", row.p95_us},
                         {"p99_us", row.p99_us},
                         {"errors", row.errors},
                         {"stable", row.stable}});
    }
    print(document, globals_.output);
  }

  Result<int> run_isolation() {
    SEPTET_TRY(os::make_folder(out_));
    std::string csv = agent::isolation_csv_header();
    CompareProgress progress;
    bool partitions_held = true;
    for (const agent::PlannedConfiguration& configuration : plan_.configurations) {
      agent::IsolationOptions options;
      options.deployment = deployment_;
      options.deployment.log_folder = out_ + "/" + configuration.name();
      SEPTET_TRY(os::make_folder(options.deployment.log_folder));
      options.seed = words_.seed;
      progress.show(fmt::format("septet: {}: one of {} replicas is made to outgrow its memory",
                                configuration.name(), configuration.replicas));
      const auto outcome =
          agent::run_isolation(*driver_, configuration, options, interrupt_->requested());
      if (!outcome.ok()) {
        return outcome.error();
      }
      csv += agent::isolation_csv_lines(*outcome);
      SEPTET_TRY(os::replace_file(out_ + "/isolation.csv", csv));
      progress.say("");
      fmt::print("{}\n{}", configuration.name(), agent::isolation_text(*outcome));
      partitions_held = partitions_held && (configuration.sharing != agent::Sharing::kMig ||
                                            agent::harmed_neighbours(*outcome) == 0);
    }
    fmt::print(stderr, "septet: written: {}\n", fs::absolute(out_ + "/isolation.csv").string());
    return partitions_held ? 0 : 1;
  }

  const CompareWords& words_;
  const Globals& globals_;
  Scale scale_;
  os::Machine machine_ = os::this_machine();
  agent::ExperimentRequest request_;
  agent::ExperimentPlan plan_;
  Duration window_{};
  std::string out_;
  agent::DeploymentOptions deployment_;
  std::string gpu_name_;
  std::string profile_;                   // of partitions
  std::map<std::string, int> instances_;  // that fill the GPU, of each profile
  bool simulated_ = false;

  std::optional<os::CgroupMounts> cgroups_;
  std::unique_ptr<os::Guardian> guardian_;
  std::unique_ptr<os::OwnedFolder> runtime_;
  std::unique_ptr<os::Interrupt> interrupt_;
  std::unique_ptr<gpu::GpuDriver> driver_;
};

}  // namespace

void add_compare(CLI::App& app, const Globals& globals, Action& action) {
  auto words = std::make_shared<CompareWords>();
  CLI::App* verb = app.add_subcommand(
      "compare", "Measure what partitioning buys: techniques x replicas x concurrency");
  verb->add_option("--techniques", words->techniques, "mig, time-slicing, streams")
      ->delimiter(',')
      ->type_name("LIST");
  verb->add_option("--profiles", words->profiles,
                   "Partition sizes to compare, each filling the GPU: 1g.5gb,2g.10gb,3g.20gb")
      ->delimiter(',')
      ->type_name("LIST");
  verb->add_option("--replicas", words->replicas, "7, 1,2,4,7 or 1:7")->type_name("NUMBERS");
  verb->add_option("--concurrency", words->concurrency, "Requests in flight: 8, 1,4,16 or 1:100")
      ->type_name("NUMBERS");
  verb->add_option("-m,--model", words->model, "Model of the repository")->capture_default_str();
  verb->add_option("--model-repository", words->repository, "Folder of models")->type_name("DIR");
  verb->add_option("--window", words->window, "Length of a measurement window, e.g. 3s")
      ->type_name("TIME");
  verb->add_option("--out", words->out, "Folder for the results")->type_name("DIR");
  verb->add_flag("--quick", words->quick, "About four minutes on two cores: fewer levels, 1,2,4,7");
  verb->add_flag("--isolation", words->isolation,
                 "Instead: let one replica outgrow its memory, see what the others feel");
  verb->add_option("--seed", words->seed, "Of the requests' data")->capture_default_str();
  verb->add_option("--gpu", words->gpu, "Index of the GPU")->capture_default_str();
  verb->callback([&globals, &action, words] {
    action = [&globals, words] {
      const Result<int> done = Compare(*words, globals).run();
      return done.ok() ? *done : fail(done.error(), globals.output);
    };
  });
}

}  // namespace septet::app
