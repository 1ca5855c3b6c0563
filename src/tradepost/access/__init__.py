"""Authentication, permissions and limits: who calls, what they may do, and how often."""
