// Everything.
#pragma once

#include <turnstile/channel/broadcast.hpp>
#include <turnstile/channel/oneshot.hpp>
#include <turnstile/channel/shared_value.hpp>
#include <turnstile/channel/watch.hpp>
#include <turnstile/core/clock.hpp>
#include <turnstile/core/default_token.hpp>
#include <turnstile/core/error.hpp>
#include <turnstile/core/format.hpp>
#include <turnstile/core/threading.hpp>
#include <turnstile/sync/auto_reset_event.hpp>
#include <turnstile/sync/event.hpp>
#include <turnstile/sync/mutex.hpp>
#include <turnstile/sync/semaphore.hpp>
#include <turnstile/version.hpp>
