#include "partition/advisor_gates.h"

#include <algorithm>

namespace septet::partition {

namespace {

class Gates {
 public:
  Gates(const Case& the_case, Technique technique)
      : case_(the_case), node_(the_case.node), demand_(the_case.demand), technique_(technique) {}

  std::vector<std::string> run(double latency_factor) {
    const bool is_vgpu = technique_ == Technique::kVgpu || technique_ == Technique::kVgpuMig;
    refuse_if(verdict(demand_.kind, technique_).fit == Fit::kNo, "kind.no");
    refuse_if(demand_.needs_vm && !is_vgpu, "vm.only_vgpu");
    check_technique();
    if (demand_.target_p99_ms) {
      const double target = *demand_.target_p99_ms;
      refuse_if(technique_ == Technique::kTimeSlice &&
                    (case_.active_tenants - 1) * node_.time_slice_ms > 0.25 * target,
                "lat.slice");
      refuse_if(demand_.alone_ms && *demand_.alone_ms * latency_factor > target, "lat.miss");
    }
    return std::move(codes_);
  }

 private:
  void refuse_if(bool failed, const char* code) {
    if (failed) {
      codes_.emplace_back(code);
    }
  }

  bool strangers() const { return demand_.trust == Trust::kStrangers; }

  void check_technique() {
    switch (technique_) {
      case Technique::kMig:
        return check_mig(case_.mig.placed());
      case Technique::kVgpuMig:
        check_vgpu();
        return check_mig(case_.mig.placed());
      case Technique::kMigMps:
        check_mig(case_.hybrid.profile != nullptr);
        refuse_if(demand_.trust != Trust::kTeam, "mps.trust");
        refuse_if(!node_.has_mps, "mps.no_binary");
        return refuse_if(case_.mig.placed(), "hybrid.not_needed");
      case Technique::kMpsV3:
        check_mps();
        refuse_if(node_.driver_major < 615, "mps_v3.driver");
        refuse_if(!node_.has_dmem, "mps_v3.dmem");
        return refuse_if(node_.mig == MigAvailability::kOn, "mps_v3.mig");
      case Technique::kMpsStatic:
        check_mps();
        refuse_if(node_.mig == MigAvailability::kOn, "mps.mig_on");
        return check_static();
      case Technique::kMps:
        check_mps();
        return refuse_if(node_.mig == MigAvailability::kOn, "mps.mig_on");
      case Technique::kVgpu:
        check_vgpu();
        refuse_if(strangers() && demand_.target_p99_ms.has_value(), "vgpu.need_mig_backed");
        // A frame buffer is fixed: unlike processes, machines cannot take turns in memory.
        return refuse_if(!case_.fits_together, "mem.sum");
      case Technique::kTimeSlice:
        return check_time_slice();
      case Technique::kShim:
        check_time_slice();
        return refuse_if(!node_.may_preload, "shim.not_allowed");
      case Technique::kStreams:
        return check_one_process();
      case Technique::kGreenContexts:
        check_one_process();
        return refuse_if(node_.cuda_version < 12040, "green.cuda");
      case Technique::kSwap:
        return check_swap();
      case Technique::kExclusive:
        return refuse_if(case_.memory_max_mib + node_.context_mib > node_.memory_mib, "mem.one");
    }
  }

  void check_mig(bool placed) {
    refuse_if(node_.profiles.empty(), "mig.not_capable");
    refuse_if(node_.mig == MigAvailability::kOff, "mig.mode_locked");
    refuse_if(!placed, "mig.no_placement");
  }

  void check_vgpu() {
    refuse_if(!demand_.needs_vm, "vgpu.no_vm_asked");
    refuse_if(!node_.has_vgpu_host, "vgpu.no_host");
  }

  void check_mps() {
    refuse_if(!node_.has_mps, "mps.no_binary");
    refuse_if(node_.compute_capability < 70, "mps.cc");
    refuse_if(strangers(), "mps.trust");
    refuse_if(demand_.jobs.size() > mps_client_limit(node_.driver_major), "mps.clients");
    refuse_if(!case_.fits_together, "mem.sum");
    refuse_if(node_.serves_several_users && node_.driver_major < 615, "mps.uid");
  }

  void check_static() {
    refuse_if(node_.driver_major < 590, "mps_static.driver");
    refuse_if(node_.compute_capability < 80, "mps_static.cc");
    unsigned chunks = 0;
    for (const Job& job : demand_.jobs) {
      chunks +=
          (job.multiprocessors + node_.chunk_multiprocessors - 1) / node_.chunk_multiprocessors;
    }
    refuse_if(chunks > node_.multiprocessors / node_.chunk_multiprocessors, "mps_static.chunks");
  }

  void check_time_slice() {
    refuse_if(strangers(), "ts.trust");
    refuse_if(!case_.fits_together, "mem.sum");
    refuse_if(node_.mig == MigAvailability::kOn, "ts.mig_on");
  }

  void check_one_process() {
    refuse_if(demand_.trust != Trust::kOneProcess, "streams.processes");
    refuse_if(case_.memory_sum_mib + node_.context_mib > node_.memory_mib, "mem.sum");
  }

  void check_swap() {
    double duty = 0;
    for (const Job& job : demand_.jobs) {
      duty += job.duty;
    }
    refuse_if(demand_.kind != WorkKind::kInteractive && demand_.kind != WorkKind::kLow,
              "swap.kind");
    refuse_if(case_.fits_together, "swap.not_needed");
    refuse_if(duty > 0.7, "swap.duty");
    refuse_if(node_.host_memory_mib < case_.memory_sum_mib, "swap.ram");
    refuse_if(!node_.may_preload, "swap.not_allowed");
    refuse_if(strangers(), "ts.trust");
    refuse_if(case_.memory_max_mib + node_.context_mib > node_.memory_mib, "mem.one");
  }

  const Case& case_;
  const Node& node_;
  const Demand& demand_;
  Technique technique_;
  std::vector<std::string> codes_;
};

}  // namespace

Case::Case(const Node& the_node, const Demand& the_demand)
    : node(the_node),
      demand(the_demand),
      active_tenants(0),
      load(0),
      memory_sum_mib(0),
      memory_max_mib(0),
      fits_together(false),
      mig(choose_profiles(the_node, the_demand.jobs)),
      hybrid(choose_hybrid(the_node, the_demand.jobs)) {
  for (const Job& job : demand.jobs) {
    active_tenants += job.duty;
    load += job.multiprocessors * job.duty / node.multiprocessors;
    memory_sum_mib += job.memory_mib;
    memory_max_mib = std::max(memory_max_mib, job.memory_mib);
  }
  active_tenants = std::max(1.0, active_tenants);
  const auto contexts = static_cast<std::int64_t>(demand.jobs.size()) * node.context_mib;
  fits_together = memory_sum_mib + contexts <= node.memory_mib;
}

std::vector<std::string> failed_gates(const Case& the_case, Technique technique,
                                      double latency_factor) {
  return Gates(the_case, technique).run(latency_factor);
}

unsigned mps_client_limit(unsigned driver_major) { return driver_major >= 590 ? 60 : 48; }

}  // namespace septet::partition
