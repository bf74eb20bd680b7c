"""The contamination scanner: does training data contain a benchmark's test items?"""
