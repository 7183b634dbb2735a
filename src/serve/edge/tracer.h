// Tracer: timestamps of sampled requests, written to files in Triton's JSON form.
//
//   begin (front end) --> RequestTrace: mark, mark, ... --last holder gone--> record --> file
//
// Shared by the server and the traces under way, which may outlive it. Any thread may call it; one
// lock guards settings and files. With log frequency 0 the file is a complete JSON array after
// every write; else every so many traces make up a file of their own, FILE.0, FILE.1 and so on.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "serve/trace_record.h"
#include "serve/trace_settings.h"

namespace septet::serve {

class Tracer;

// The trace of one request. Held by whoever still has something to mark; used by one thread at a
// time, as the request is.
class RequestTrace {
 public:
  RequestTrace(std::shared_ptr<Tracer> tracer, std::string settings_of, TraceRecord record)
      : tracer_(std::move(tracer)),
        settings_of_(std::move(settings_of)),
        record_(std::move(record)) {}
  ~RequestTrace();
  RequestTrace(const RequestTrace&) = delete;
  RequestTrace& operator=(const RequestTrace&) = delete;

  // name: a literal.
  void mark(std::string_view name, Instant when) { record_.timestamps.emplace_back(name, when); }
  // Marks when the last holder of what is returned lets it go.
  static std::shared_ptr<const void> mark_when_gone(std::shared_ptr<RequestTrace> trace,
                                                    std::string_view name);
  // What the request turned out to be for.
  void describe(const std::string& model, std::int64_t version, const std::string& request_id);
  // The trace of a part of it.
  std::shared_ptr<RequestTrace> child() const;

 private:
  std::shared_ptr<Tracer> tracer_;
  std::string settings_of_;
  TraceRecord record_;
};

class Tracer : public std::enable_shared_from_this<Tracer> {
 public:
  // on_error is told the first time that a file cannot be written; from any thread.
  Tracer(const TraceStart& start, std::function<void(const Error&)> on_error);
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  const std::string& file() const { return file_; }
  TraceSetting setting_of(const std::string& model) const;
  // Writes what was traced before. An empty model means the global settings.
  void change(const std::string& model, const TraceChange& change);

  // Writes what is left. Traces that end later are dropped.
  void close();

  // A trace if this request is to have one, else null.
  std::shared_ptr<RequestTrace> begin(const std::string& model);

 private:
  friend class RequestTrace;

  std::uint64_t next_id() { return ++last_id_; }
  void collect(const std::string& settings_of, const TraceRecord& record);
  struct Pending {
    std::string elements{};  // joined by commas
    std::uint32_t traces = 0;
  };
  void write_pending();
  void append_to_file();
  void write_numbered_file();
  void report(const std::string& path);

  const std::string file_;
  std::atomic<std::uint64_t> last_id_ = 0;
  std::atomic<bool> is_on_ = false;  // some setting has timestamps: else nobody takes the lock

  mutable std::mutex mutex_;  // guards all below
  std::function<void(const Error&)> on_error_;
  TraceSettings settings_;
  bool closed_ = false;
  Pending for_file_;      // log frequency 0
  Pending for_numbered_;  // any other
  std::uint64_t next_number_ = 0;
  std::uint64_t file_bytes_ = 0;  // 0 = not begun
  bool reported_ = false;
};

}  // namespace septet::serve
