#include "agent/edge/deployment.h"

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>

#include "os/clock.h"
#include "partition/edge/apply.h"

namespace septet::agent {
namespace {

constexpr Duration kJoinTimeout = seconds(30);  // of the balancer's probes, once replicas are ready
constexpr int kLookMs = 5;

const gpu::GpuInstanceProfile* profile_of(const gpu::GpuState& state, gpu::ProfileId id) {
  for (const gpu::GpuInstanceProfile& profile : state.profiles) {
    if (profile.id == id) {
      return &profile;
    }
  }
  return nullptr;
}

const gpu::GpuInstanceProfile* profile_named(const gpu::GpuState& state, const std::string& name) {
  for (const gpu::GpuInstanceProfile& profile : state.profiles) {
    if (profile.name == name) {
      return &profile;
    }
  }
  return nullptr;
}

os::CgroupLimits limits_of(const SliceShare& share) {
  return {.cpus = share.cpus, .period = share.period, .memory_bytes = share.memory_bytes};
}

}  // namespace

Result<std::unique_ptr<Deployment>> Deployment::start(gpu::GpuDriver& driver,
                                                      const PlannedConfiguration& configuration,
                                                      const DeploymentOptions& options,
                                                      const std::atomic<bool>& interrupted) {
  std::unique_ptr<Deployment> deployment(new Deployment(options, configuration));
  SEPTET_TRY(deployment->lay_out(driver));
  SEPTET_TRY(deployment->make_groups());
  SEPTET_TRY(deployment->start_replicas(interrupted));
  SEPTET_TRY(deployment->start_balancer(interrupted));
  return deployment;
}

Result<Ok> Deployment::lay_out(gpu::GpuDriver& driver) {
  const partition::ApplyOptions apply{.state = partition::StateFolder(options_.state_folder)};
  const Result<gpu::GpuState> before = driver.observe(options_.gpu);
  if (!before.ok()) {
    return before.error();
  }
  Result<partition::ApplyReport> report = [&]() -> Result<partition::ApplyReport> {
    if (configuration_.sharing != Sharing::kMig) {
      return partition::apply_layout(driver, options_.gpu,
                                     {.mode = gpu::MigMode::kDisabled, .instances = {}}, apply);
    }
    const gpu::GpuInstanceProfile* profile = configuration_.profile.empty()
                                                 ? smallest_profile(*before)
                                                 : profile_named(*before, configuration_.profile);
    if (profile == nullptr) {
      return make_error(
          ErrorKind::kPrecondition,
          fmt::format("GPU {} ({}) cannot be partitioned{}", options_.gpu, before->name,
                      configuration_.profile.empty() ? "" : " into " + configuration_.profile));
    }
    partition::Want want;
    want.items.push_back({.profile = {.text = profile->name, .id = profile->id},
                          .count = static_cast<unsigned>(configuration_.replicas),
                          .start = {}});
    return partition::apply_want(driver, options_.gpu, want, apply);
  }();
  if (!report.ok()) {
    return report.error();
  }
  if (const auto error = partition::error_of(*report)) {
    return *error;
  }
  if (const gpu::GpuInstanceProfile* smallest = smallest_profile(*before)) {
    slices_of_memory_ = static_cast<double>(before->memory_total_mib) /
                        static_cast<double>(std::max<std::int64_t>(1, smallest->memory_mib));
  }
  if (configuration_.sharing == Sharing::kMig) {
    return place_on_partitions(report->state);
  }
  place_on_device(report->state);
  return Ok{};
}

Result<Ok> Deployment::place_on_partitions(const gpu::GpuState& state) {
  for (const gpu::GpuInstance& instance : state.instances) {
    const gpu::GpuInstanceProfile* profile = profile_of(state, instance.profile_id);
    for (const gpu::ComputeInstance& compute : instance.compute_instances) {
      if (profile != nullptr) {
        places_.push_back({.name = fmt::format("partition-{}", places_.size()),
                           .visible_device = compute.uuid.value(),
                           .group = shares_.size()});
        shares_.push_back(slice_share(state, *profile, options_.machine));
      }
    }
  }
  if (places_.size() != static_cast<std::size_t>(configuration_.replicas)) {
    return make_error(ErrorKind::kVerification,
                      fmt::format("the layout of GPU {} has {} MIG devices, not {}", options_.gpu,
                                  places_.size(), configuration_.replicas));
  }
  return Ok{};
}

void Deployment::place_on_device(const gpu::GpuState& state) {
  shares_.push_back(device_share(state, options_.machine));
  const int processes = configuration_.sharing == Sharing::kStreams ? 1 : configuration_.replicas;
  for (int i = 0; i < processes; ++i) {
    places_.push_back(
        {.name = fmt::format("{}-{}",
                             configuration_.sharing == Sharing::kStreams ? "server" : "replica", i),
         .visible_device = state.uuid.value(),
         .group = 0});
  }
}

Result<Ok> Deployment::make_groups() {
  if (!options_.cgroups) {
    return Ok{};
  }
  for (std::size_t i = 0; i < shares_.size(); ++i) {
    // Loading a model is not what is measured: until all are ready only memory is limited.
    os::CgroupLimits limits = limits_of(shares_[i]);
    limits.cpus = 0;
    Result<std::unique_ptr<os::Cgroup>> group = os::Cgroup::create(
        *options_.cgroups, fmt::format("{}-{}", configuration_.name(), i), limits);
    if (!group.ok()) {
      return group.error();
    }
    groups_.push_back(*std::move(group));
  }
  return Ok{};
}

os::Endpoint Deployment::endpoint_of(std::size_t index) const {
  os::Endpoint endpoint;
  endpoint.unix_path = fmt::format("{}/{}.sock", options_.runtime_folder, places_[index].name);
  return endpoint;
}

ReplicaSpec Deployment::spec(std::size_t index) const {
  const Place& place = places_[index];
  ReplicaSpec spec;
  spec.name = place.name;
  spec.endpoint = endpoint_of(index);
  spec.health_target = fmt::format("/v2/models/{}/ready", options_.model);
  spec.log_path = fmt::format("{}/{}.log", options_.log_folder, place.name);
  spec.process.arguments = {
      options_.program, "serve",    "--model-repository", options_.model_repository, "--model",
      options_.model,   "--listen", spec.endpoint.text(), "--exit-with-parent"};
  if (configuration_.sharing == Sharing::kStreams) {
    spec.process.arguments.emplace_back("--instances");
    spec.process.arguments.push_back(std::to_string(configuration_.replicas));
  }
  if (index == 0) {
    spec.process.arguments.insert(spec.process.arguments.end(),
                                  options_.first_replica_extra.begin(),
                                  options_.first_replica_extra.end());
  }
  spec.process.environment = {{"CUDA_VISIBLE_DEVICES", place.visible_device}};
  if (!groups_.empty()) {
    spec.process.cgroup_procs_files = groups_[place.group]->procs_files();
  }
  return spec;
}

Result<Ok> Deployment::start_replicas(const std::atomic<bool>& interrupted) {
  Result<std::unique_ptr<ReplicaSet>> replicas = ReplicaSet::start({.starts_allowed = 2});
  if (!replicas.ok()) {
    return replicas.error();
  }
  replicas_ = *std::move(replicas);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    SEPTET_TRY(replicas_->add(spec(i)));
  }
  SEPTET_TRY(replicas_->wait_ready(options_.start_timeout, interrupted));
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    SEPTET_TRY(groups_[i]->set_limits(limits_of(shares_[i])));
  }
  return Ok{};
}

Result<Ok> Deployment::start_balancer(const std::atomic<bool>& interrupted) {
  balance::ProxyOptions options;
  os::Endpoint listen;
  listen.unix_path = options_.runtime_folder + "/balancer.sock";
  options.listen = {listen};
  if (configuration_.sharing == Sharing::kStreams) {
    // One server with many instances keeps the queue itself: bounding what is outstanding there to
    // what one instance runs would leave the others idle.
    options.policy = balance::Policy::kShortestExpectedDelay;
  }
  std::vector<balance::Upstream> upstreams;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    upstreams.push_back({.name = places_[i].name, .endpoint = endpoint_of(i), .models = {}});
  }
  Result<std::unique_ptr<balance::Proxy>> proxy =
      balance::Proxy::start(std::move(options), std::move(upstreams));
  if (!proxy.ok()) {
    return proxy.error();
  }
  proxy_ = *std::move(proxy);
  const Instant deadline = os::now() + kJoinTimeout;
  while (true) {
    const balance::ProxyStats stats = proxy_->stats();
    const auto up = std::count_if(stats.upstreams.begin(), stats.upstreams.end(),
                                  [](const balance::UpstreamStats& s) { return s.state == "up"; });
    if (up == static_cast<std::ptrdiff_t>(places_.size())) {
      return Ok{};
    }
    if (interrupted || os::now() > deadline) {
      return make_error(ErrorKind::kFailed,
                        fmt::format("the balancer reaches {} of {} replicas", up, places_.size()),
                        fmt::format("their logs are in {}", options_.log_folder));
    }
    poll(nullptr, 0, kLookMs);
  }
}

std::vector<os::Endpoint> Deployment::replica_endpoints() const {
  std::vector<os::Endpoint> endpoints;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    endpoints.push_back(endpoint_of(i));
  }
  return endpoints;
}

std::vector<std::string> Deployment::replica_names() const {
  std::vector<std::string> names;
  for (const Place& place : places_) {
    names.push_back(place.name);
  }
  return names;
}

os::CgroupUsage Deployment::usage() const {
  os::CgroupUsage sum;
  for (const std::unique_ptr<os::Cgroup>& group : groups_) {
    const os::CgroupUsage one = group->usage();
    sum.cpu_time += one.cpu_time;
    sum.periods += one.periods;
    sum.throttled_periods += one.throttled_periods;
    sum.memory_bytes += one.memory_bytes;
    sum.out_of_memory_kills += one.out_of_memory_kills;
  }
  return sum;
}

Result<Ok> Deployment::scale_memory(std::int64_t slice_bytes) {
  const double bytes = configuration_.sharing == Sharing::kMig
                           ? static_cast<double>(slice_bytes)
                           : static_cast<double>(slice_bytes) * slices_of_memory_;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    shares_[i].memory_bytes = static_cast<std::int64_t>(bytes);
    SEPTET_TRY(groups_[i]->set_limits(limits_of(shares_[i])));
  }
  return Ok{};
}

}  // namespace septet::agent
