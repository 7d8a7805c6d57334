// SPDX-License-Identifier: BSL-1.0
// Operations that complete when a test says so.
#pragma once

#include <turnstile/core/config.hpp>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/associated_executor.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/test/unit_test.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace kit {

namespace asio = boost::asio;
using turnstile::error_code;

// An operation `void(error_code, int)`. Each run stays outstanding until the test completes it, or
// until it is cancelled, unless it ignores cancellation.
class scripted_operation {
    struct completer {
        virtual ~completer() = default;
        virtual void complete(const asio::any_io_executor& executor, error_code ec, int v) = 0;
    };
    template <class Handler>
    struct completer_of final : completer {
        explicit completer_of(Handler h) : handler(std::move(h)) {}
        void complete(const asio::any_io_executor& executor, error_code ec, int v) override
        {
            auto own = asio::get_associated_executor(handler, executor);
            asio::post(executor, [h = std::move(handler), own, ec, v]() mutable {
                asio::dispatch(own, [h = std::move(h), ec, v]() mutable { std::move(h)(ec, v); });
            });
        }
        Handler handler;
    };
    struct run {
        std::unique_ptr<completer> handler;
        asio::cancellation_type_t cancelled = asio::cancellation_type::none;
        bool ignores_cancellation = false;
        bool over = false;
    };
    struct script {
        asio::any_io_executor executor;
        std::vector<std::shared_ptr<run>> runs;
        bool ignores_cancellation = false;
    };

    struct initiation {
        using executor_type = asio::any_io_executor;
        std::shared_ptr<script> s;

        executor_type get_executor() const noexcept { return s->executor; }

        template <class Handler>
        void operator()(Handler handler) const
        {
            auto r = std::make_shared<run>();
            r->ignores_cancellation = s->ignores_cancellation;
            auto slot = asio::get_associated_cancellation_slot(handler);
            if (slot.is_connected())
                slot.assign([weak_run = std::weak_ptr(r),
                             weak_script = std::weak_ptr(s)](asio::cancellation_type_t type) {
                    const auto run = weak_run.lock();
                    const auto script = weak_script.lock();
                    if (!run || !script)
                        return;
                    run->cancelled |= type;
                    if (!run->over && !run->ignores_cancellation)
                        complete(*script, *run, asio::error::operation_aborted, 0);
                });
            r->handler = std::make_unique<completer_of<Handler>>(std::move(handler));
            s->runs.push_back(std::move(r));
        }
    };

public:
    explicit scripted_operation(asio::any_io_executor executor)
        : script_(std::make_shared<script>())
    {
        script_->executor = std::move(executor);
    }

    void ignore_cancellation() { script_->ignores_cancellation = true; }

    // Copies share the script: their runs are runs of the same operation.
    template <class Token>
    auto operator()(Token&& token) const
    {
        return asio::async_initiate<Token, void(error_code, int)>(initiation{script_}, token);
    }

    std::size_t started() const { return script_->runs.size(); }
    std::size_t running() const
    {
        std::size_t n = 0;
        for (const auto& r : script_->runs)
            n += r->over ? 0 : 1;
        return n;
    }
    asio::cancellation_type_t cancelled(std::size_t i) const { return at(i).cancelled; }
    bool was_cancelled(std::size_t i) const
    {
        return cancelled(i) != asio::cancellation_type::none;
    }

    void succeed(std::size_t i, int value) const { complete(*script_, at(i), {}, value); }
    void fail(std::size_t i, error_code ec) const { complete(*script_, at(i), ec, 0); }

private:
    run& at(std::size_t i) const
    {
        BOOST_TEST_REQUIRE(i < script_->runs.size());
        return *script_->runs[i];
    }

    static void complete(script& s, run& r, error_code ec, int value)
    {
        BOOST_TEST_REQUIRE(!r.over);
        r.over = true;
        const auto handler = std::move(r.handler);
        handler->complete(s.executor, ec, value);
    }

    std::shared_ptr<script> script_;
};

} // namespace kit
