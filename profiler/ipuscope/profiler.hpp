/*
 * ipuscope/profiler.hpp: ipuscope/profiler.h for C++11 and later: recordings, spans and keys that
 * end with their scope. Only this header: link as for the C one.
 *
 *	#include <ipuscope/profiler.hpp>
 *
 *	void record_work(int items, void (*work)(int item))
 *	{
 *		ipuscope::recording run("run.db"); // throws ipuscope::error
 *
 *		for (int item = 0; item < items; item++) {
 *			ips_keys keys = IPS_KEYS_NULL;
 *			keys.step = item;
 *			ipuscope::keys here(run, keys);
 *			IPUSCOPE_SPAN(run, "data", "load batch");
 *			ipuscope::span one(run, "item " + std::to_string(item % 4));
 *			one.arg("item", item);
 *			work(item);
 *		}
 *		run.close(); // throws, where the destructor is silent
 *	}
 *
 * Off: with a recording that was never opened nothing is recorded, at the cost of a branch.
 *
 * Threads: spans and keys belong to the thread that makes them and must be destroyed by it, the
 * latest first, as C++ does with variables of a scope. They go to the calling thread's track
 * (ips_thread_track()).
 */
#ifndef IPUSCOPE_PROFILER_HPP
#define IPUSCOPE_PROFILER_HPP

#include <ipuscope/profiler.h>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace ipuscope
{

/* A call of the library that failed; what() is its one line. */
class error : public std::runtime_error
{
      public:
	error(int code, const std::string &message) : std::runtime_error(message), status(code) {}

	const int status; /* positive; ips_status_text() has its text */
};

/* A recording that ends with its scope. Movable, so that it may be a member or a result. */
class recording
{
      public:
	recording() = default; /* off */
	explicit recording(const std::string &path, const ips_recording_params *params = nullptr)
	{
		char message[512];
		const int status = ips_recording_open(&handle, path.c_str(), params, message,
						      sizeof(message));

		if (status != 0)
			throw error(status, message);
	}
	recording(recording &&other) noexcept : handle(other.handle)
	{
		other.handle = nullptr;
	}
	recording &operator=(recording &&other) noexcept
	{
		if (this != &other) {
			ips_recording_close(handle, nullptr, 0);
			handle = other.handle;
			other.handle = nullptr;
		}
		return *this;
	}
	~recording()
	{
		ips_recording_close(handle, nullptr, 0);
	}

	/* Finish the file; throws the first failure of the whole recording. */
	void close()
	{
		char message[512];
		ips_recording *const closing = handle;

		handle = nullptr;
		const int status = ips_recording_close(closing, message, sizeof(message));
		if (status != 0)
			throw error(status, message);
	}

	/* Set a fact in `meta`; throws if its name is the library's own or writing has failed. */
	void meta(const std::string &key, const std::string &value)
	{
		const int status = ips_meta_set(handle, key.c_str(), value.c_str());

		if (status != 0)
			throw error(status, "meta " + key + ": " + ips_status_text(status));
	}

	/* For the functions of the C header; null: off. Owned by this object. */
	ips_recording *get() const
	{
		return handle;
	}
	operator ips_recording *() const
	{
		return handle;
	}

      private:
	ips_recording *handle = nullptr;
};

/* A span for a scope. */
class span
{
      public:
	span(ips_track *lane, ips_site *site) : track(lane)
	{
		ips_span_begin(track, site);
	}
	span(ips_recording *run, ips_site *site) : span(ips_thread_track(run, nullptr), site) {}
	/* A name that is known at run time: looked up at each call; IPUSCOPE_SPAN is for names that
	 * are fixed. @operation: the layer or planned operation that it belongs to. */
	span(ips_recording *run, const std::string &name, const std::string &category = "span",
	     const char *operation = nullptr)
	    : track(ips_thread_track(run, nullptr))
	{
		if (track)
			ips_span_begin(track, ips_site_intern(category.c_str(), name.c_str(),
							      operation));
	}
	~span()
	{
		ips_span_end(track);
	}
	span(const span &) = delete;
	span &operator=(const span &) = delete;

	/* Arguments of the innermost open span; @static_name must outlive the recording. */
	template <typename number>
	typename std::enable_if<std::is_integral<number>::value>::type arg(const char *static_name,
									   number value)
	{
		ips_span_arg_int(track, static_name, static_cast<int64_t>(value));
	}
	void arg(const char *static_name, double value)
	{
		ips_span_arg_real(track, static_name, value);
	}
	void arg(const char *static_name, const std::string &value)
	{
		ips_span_arg_long_text(track, static_name, value.c_str());
	}

      private:
	ips_track *track;
};

/* Keys of the calling thread for a scope; at its end those before it hold again. */
class keys
{
      public:
	keys(ips_recording *recording, const ips_keys &now) : run(recording)
	{
		ips_thread_keys(run, &before);
		ips_thread_set_keys(run, &now);
	}
	~keys()
	{
		ips_thread_set_keys(run, &before);
	}
	keys(const keys &) = delete;
	keys &operator=(const keys &) = delete;

      private:
	ips_recording *run;
	ips_keys before;
};

} // namespace ipuscope

#define IPUSCOPE_JOIN(a, b) a##b
#define IPUSCOPE_NAME(a, b) IPUSCOPE_JOIN(a, b)

/* Record a span of the calling thread until the end of the enclosing scope; @category and @name
 * are string literals. */
#define IPUSCOPE_SPAN(run, category, name)                                                         \
	IPS_SITE(IPUSCOPE_NAME(ipuscope_site_, __LINE__), category, name);                         \
	ipuscope::span IPUSCOPE_NAME(ipuscope_span_, __LINE__)(                                    \
		run, &IPUSCOPE_NAME(ipuscope_site_, __LINE__))

#endif /* IPUSCOPE_PROFILER_HPP */
