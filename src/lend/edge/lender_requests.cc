// The part of the Lender that answers holders: requests, renewals, releases, processes, activity.

#include <fmt/format.h>
#include <sys/stat.h>

#include <utility>

#include "lend/edge/lender.h"
#include "os/clock.h"

namespace septet::lend {

LeaseId Lender::request(const LeaseRequest& request, LeaseListener& listener) {
  const LeaseId id = ledger_.next_id();
  listeners_.emplace(id, &listener);
  if (!unwritten_.empty()) {
    retry_writing();
  }
  if (!unwritten_.empty()) {
    tell(id, TellRefused{id, make_error(ErrorKind::kFailed, trouble_)});
    return id;
  }
  step(LeaseRequested{id, request});
  return id;
}

Result<const Lease*> Lender::find(LeaseId lease, UserId by) const {
  const auto found = ledger_.leases().find(lease);
  if (found == ledger_.leases().end()) {
    return make_error(ErrorKind::kNotFound,
                      fmt::format("there is no running lease {}", lease.value()),
                      "see septet lease list and septet lease history");
  }
  if (by != found->second.request.owner.uid && by.value() != 0) {
    return make_error(ErrorKind::kPermission, fmt::format("lease {} belongs to {}", lease.value(),
                                                          found->second.request.owner.user));
  }
  return &found->second;
}

Result<Lease> Lender::renew(const RenewalRequested& renewal) {
  in_hand_ = renewal.id;
  refusal_.reset();
  step(renewal);
  in_hand_ = {};
  if (refusal_) {
    return *std::exchange(refusal_, std::nullopt);
  }
  return ledger_.leases().at(renewal.id);
}

Result<Ok> Lender::release(LeaseId lease, UserId by) {
  in_hand_ = lease;
  refusal_.reset();
  step(ReleaseRequested{lease, by});
  in_hand_ = {};
  if (refusal_) {
    return *std::exchange(refusal_, std::nullopt);
  }
  return Ok{};
}

Result<Lease> Lender::attach(LeaseId lease, UserId by, LeaseListener& listener) {
  const Result<const Lease*> found = find(lease, by);
  SEPTET_TRY(found);
  if (const auto adoption = adoptions_.find(lease); adoption != adoptions_.end()) {
    loop_.cancel(adoption->second);
    adoptions_.erase(adoption);
  }
  listeners_.emplace(lease, &listener);
  return **found;
}

void Lender::forget(LeaseListener& listener) {
  std::erase_if(listeners_, [&](const auto& each) { return each.second == &listener; });
}

void Lender::forget_soon(LeaseListener& listener, std::function<void()> done) {
  loop_.post([this, &listener, done = std::move(done)] {
    forget(listener);
    done();
  });
}

Result<Ok> Lender::check_owner(LeaseId lease, UserId by) const {
  SEPTET_TRY(find(lease, by));
  return Ok{};
}

void Lender::holder_lost(LeaseId lease) { step(HolderLost{lease}); }

Result<Ok> Lender::add_process(LeaseId lease, UserId by, pid_t pid) {
  const Result<const Lease*> found = find(lease, by);
  SEPTET_TRY(found);
  if (!(*found)->runs()) {
    return make_error(ErrorKind::kPrecondition,
                      fmt::format("lease {} is {}: no process can be added", lease.value(),
                                  to_string((*found)->state)));
  }
  // Moving somebody else's process would pause or end it with this lease.
  struct stat status {};
  const std::string folder = fmt::format("/proc/{}", pid);
  if (pid <= 0 || stat(folder.c_str(), &status) != 0) {
    return make_error(ErrorKind::kNotFound, fmt::format("there is no process {}", pid));
  }
  if (status.st_uid != by.value() && by.value() != 0) {
    return make_error(ErrorKind::kPermission, fmt::format("process {} is not yours", pid));
  }
  return ground_.add_process(lease, pid);
}

Result<Ok> Lender::report_activity(LeaseId lease, UserId by, Activity activity) {
  SEPTET_TRY(find(lease, by));
  // Only work is believed: whether it rests is judged by what the machine shows.
  if (activity == Activity::kBusy) {
    step(ActivityObserved{lease, os::now(), activity});
  }
  return Ok{};
}

const LeaseSetting* Lender::setting(LeaseId lease) const {
  const auto found = settings_.find(lease);
  return found == settings_.end() ? nullptr : &found->second;
}

}  // namespace septet::lend
