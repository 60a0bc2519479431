# SPDX-License-Identifier: Apache-2.0
"""What every wrapper is made of: a call taken apart for JAX, a result put together."""
