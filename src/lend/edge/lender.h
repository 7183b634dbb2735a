// Lender: runs the ledger: writes what it decides, does what it commands, tells it what happened.
//
// Owned by the daemon part; everything in the one thread of its EventLoop. A listener hears the
// news of one lease; it must not call the Lender from on_news() (post to the loop instead).
// What cannot be written is not promised: while the ledger's file cannot be written, nothing new is
// lent, and everything that runs goes on.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "lend/edge/lease_ground.h"
#include "lend/edge/ledger_file.h"
#include "lend/ledger.h"
#include "os/event_loop.h"

namespace septet::lend {

using LeaseNews = std::variant<TellGranted, TellQueued, TellRefused, WarnHolder, WithdrawWarning,
                               AskToEnd, TellEnded>;

class LeaseListener {
 public:
  virtual ~LeaseListener() = default;
  virtual void on_news(LeaseId lease, const LeaseNews& news) = 0;
};

// Looks what there is to lend. Takes the processes of leases, which do not make a partition held.
using ObservePartitions = std::function<Result<PartitionsObserved>(const std::set<std::int64_t>&)>;

// Re-lays idle partitions; the answer is given at once.
using ChangePartitions = std::function<LayoutChangeEnded(const ChangeLayout&)>;

struct LenderOptions {
  Policy policy;
  Duration sample_every = seconds(2);   // the activity of leases
  Duration observe_every = seconds(5);  // the partitions
  Duration adopt_within = seconds(60);  // else an attached holder that does not come back is gone
  Duration clear_poll = milliseconds(50);  // whether asked processes have ended
  Duration write_retry = seconds(5);       // after a failed write
};

class Lender {
 public:
  // Takes over what the file says. Nothing in it is borrowed for less than the Lender's life.
  static Result<std::unique_ptr<Lender>> start(os::EventLoop& loop, LedgerFile& file,
                                               LeaseGround& ground, ObservePartitions observe,
                                               ChangePartitions change_layout,
                                               const LenderOptions& options);
  ~Lender();
  Lender(const Lender&) = delete;
  Lender& operator=(const Lender&) = delete;

  // News may come before this returns.
  LeaseId request(const LeaseRequest& request, LeaseListener& listener);
  Result<Lease> renew(const RenewalRequested& renewal);
  Result<Ok> release(LeaseId lease, UserId by);
  // The holder's program is back after a restart of the daemon, or another one listens.
  Result<Lease> attach(LeaseId lease, UserId by, LeaseListener& listener);
  // Whether the lease runs or waits and belongs to that user (or the user is root).
  Result<Ok> check_owner(LeaseId lease, UserId by) const;
  // The listener goes; whether that ends the lease is the caller's to say (holder_lost).
  void forget(LeaseListener& listener);
  // The same, and calls back from the loop: when it is safe to destroy the listener.
  void forget_soon(LeaseListener& listener, std::function<void()> done);
  void holder_lost(LeaseId lease);
  // The process belongs to `by` and may be put under the lease's limits.
  Result<Ok> add_process(LeaseId lease, UserId by, pid_t pid);
  // What the holder's own means say about its activity, such as a notebook's.
  Result<Ok> report_activity(LeaseId lease, UserId by, Activity activity);
  void observe_partitions();

  const Ledger& ledger() const { return ledger_; }
  const LeaseSetting* setting(LeaseId lease) const;
  Result<std::vector<HistoryEntry>> history(const HistoryQuery& query) {
    return file_.history(query);
  }
  // Why nothing new is lent now; empty when all is well.
  const std::string& trouble() const { return trouble_; }

 private:
  Lender(os::EventLoop& loop, LedgerFile& file, LeaseGround& ground, ObservePartitions observe,
         ChangePartitions change_layout, const LenderOptions& options);

  Result<Ok> take_over();
  void step(const Event& event);
  void work_off();
  bool save(const std::vector<Command>& commands);
  void refuse_unwritten(const std::vector<Command>& commands);
  void execute(const Command& command);
  void prepare(const Lease& lease);
  void ask_to_end(const AskToEnd& command);
  void try_clear(LeaseId lease);
  void poll_releasing();
  void tell(LeaseId lease, const LeaseNews& news);
  void arm_deadline();
  void sample();
  void retry_writing();
  Result<const Lease*> find(LeaseId lease, UserId by) const;

  os::EventLoop& loop_;
  LedgerFile& file_;
  LeaseGround& ground_;
  ObservePartitions observe_;
  ChangePartitions change_layout_;
  LenderOptions options_;
  Ledger ledger_;
  std::string boot_;

  std::map<LeaseId, LeaseSetting> settings_;
  std::multimap<LeaseId, LeaseListener*> listeners_;
  std::map<LeaseId, Lease> unwritten_;
  std::string trouble_;
  std::optional<Error> refusal_;  // of the renewal or release in hand
  LeaseId in_hand_;
  bool working_off_ = false;
  std::vector<Event> pending_;  // events that came up while commands were done

  os::EventLoop::Timer deadline_;
  os::EventLoop::Timer clear_timer_;
  os::EventLoop::Timer sample_timer_;
  os::EventLoop::Timer observe_timer_;
  os::EventLoop::Timer write_timer_;
  std::map<LeaseId, os::EventLoop::Timer> adoptions_;
};

}  // namespace septet::lend
